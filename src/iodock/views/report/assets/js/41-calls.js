// Calls, and the files of a call: the first two steps of the drill-down.

function callPath(call) {
  return '#/call/' + encodeURIComponent(call);
}

function filePath(index) {
  return '#/file/' + index;
}

function drawCalls(parent) {
  if (!PAGE.calls.rows.length) {
    parent.append(element('p', { class: 'empty', text: words('calls.none') }));
    return;
  }
  const timed = PAGE.run.durations;
  const table = new Table(PAGE.calls, {
    caption: words('calls.caption'), unit: 'unit.calls', open: (row) => go(callPath(row[0])),
    bar: timed ? 'total_time_ns' : 'count', sort: timed ? 'total_time_ns' : 'count', limit: 20,
  });
  parent.append(table.node);
}

function panelHead(title) {
  return element('div', { class: 'panel-head' }, element('h3', { tabindex: '-1', class: 'panel-title' }, title));
}

function callPanel(call) {
  const data = PAGE.call_files[call];
  const title = [words('call.files_of') + ' ', element('code', { text: visibleName(call) })];
  const panel = element('section', { class: 'panel', id: 'call-panel' }, panelHead(title));
  if (!data || !data.rows.length) {
    panel.append(element('p', { class: 'empty', text: words('call.no_files') }));
    return panel;
  }
  panel.append(new Table(data, {
    caption: words('call.caption', { call: visibleName(call) }), unit: 'unit.files',
    open: (row) => go(filePath(row[0])), bar: PAGE.run.durations ? 'total_time_ns' : 'count',
    sort: PAGE.run.durations ? 'total_time_ns' : 'count', limit: 10,
  }).node);
  return panel;
}
