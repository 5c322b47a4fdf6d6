// Calls, and the files of a call: the first two steps of the drill-down.

function callPath(call) {
  return '#/call/' + encodeURIComponent(call);
}

function filePath(index) {
  return '#/file/' + index;
}

function drawCalls(parent) {
  if (!PAGE.calls.rows.length) {
    parent.append(element('p', { class: 'empty', text: gettext('No calls on files were seen.') }));
    return;
  }
  const timed = PAGE.run.durations;
  const table = new Table(PAGE.calls, {
    caption: gettext('System calls'), unit: (n) => ngettext('{n} kind of call', '{n} kinds of call', n), open: (row) => go(callPath(row[0])),
    bar: timed ? 'total_time_ns' : 'count', sort: timed ? 'total_time_ns' : 'count', limit: 20,
  });
  parent.append(table.node);
}

function panelHead(title) {
  return element('div', { class: 'panel-head' }, element('h3', { tabindex: '-1', class: 'panel-title' }, title));
}

function callPanel(call) {
  const data = PAGE.call_files[call];
  const title = gettextAround(gettext('Files used by {call}'), '{call}', element('code', { text: visibleName(call) }));
  const panel = element('section', { class: 'panel', id: 'call-panel' }, panelHead(title));
  if (!data || !data.rows.length) {
    panel.append(element('p', { class: 'empty', text: gettext('None of these calls names a file.') }));
    return panel;
  }
  panel.append(new Table(data, {
    caption: gettext('Files that {call} was called on', { call: visibleName(call) }), unit: (n) => ngettext('{n} file', '{n} files', n),
    open: (row) => go(filePath(row[0])), bar: PAGE.run.durations ? 'total_time_ns' : 'count',
    sort: PAGE.run.durations ? 'total_time_ns' : 'count', limit: 10,
  }).node);
  return panel;
}
