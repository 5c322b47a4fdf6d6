// Files: search, the list, and one file's calls, sizes, timeline and offsets.

// What a typed pattern stands for: * for anything within a folder, [*] for the letter itself.
function globExpression(glob) {
  const parts = glob.match(/\[[*?[]\]|\*|[^*]/gu) || [];
  const source = parts.map((part) => part === '*' ? '[^/]*' : part.replace(/^\[(.)\]$/u, '$1').replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp('^' + source.join('') + '$', 'u');
}

function nameFilter(wanted) {
  if (!wanted.includes('*')) return (name) => name.includes(wanted);
  const expression = globExpression(wanted);
  return (name) => expression.test(name) || name.includes(wanted);
}

function searchBox(table, total) {
  const status = element('span', { class: 'search-status', 'aria-live': 'polite' });
  const input = element('input', {
    type: 'search', id: 'file-search', autocomplete: 'off', spellcheck: 'false', placeholder: gettext('part of its name'),
    oninput: () => {
      const wanted = input.value.toLowerCase();
      const fits = nameFilter(wanted);
      const shown = table.filter(wanted ? (row) => fits(visibleName(NAMES[row[0]]).toLowerCase()) : null);
      status.textContent = wanted ? gettext('{n} of {of} listed files', { n: grouped(shown), of: grouped(total) }) : '';
    },
    onkeydown: (event) => {
      if (event.key !== 'ArrowDown') return;
      const first = table.stops()[0];
      if (!first) return;
      event.preventDefault();
      first.focus();
    },
  });
  return element('div', { class: 'search no-print' }, element('label', { for: 'file-search', text: gettext('Find a file') }), input, status);
}

function drawFiles(parent) {
  const data = PAGE.files;
  if (!data.rows.length) {
    parent.append(element('p', { class: 'empty', text: gettext('No file was touched.') }));
    return;
  }
  const measure = PAGE.run.durations ? 'total_time_ns' : 'count';
  const table = new Table(data, {
    caption: PAGE.patterns ? gettext('File by file') : gettext('I/O by file'), unit: (n) => ngettext('{n} file', '{n} files', n), open: (row) => go(filePath(row[0])), bar: measure, sort: measure, limit: PAGE.patterns ? 8 : 15,
  });
  if (PAGE.patterns) parent.append(patternTable(measure));
  parent.append(searchBox(table, data.rows.length), table.node);
  if (data.of > data.rows.length) parent.append(element('p', { class: 'note', text: gettext('The search covers the {n} listed files; the row "not listed" has the rest.', { n: grouped(data.rows.length) }) }));
}

// Files of similar names as one row; opened, they are looked for in the list below.
function patternTable(measure) {
  return new Table(PAGE.patterns, {
    caption: gettext('I/O by file'), unit: (n) => gettext('{n} files and patterns', { n: grouped(n) }),
    open: (row) => (row[1] > 1 ? findFiles(visibleName(NAMES[row[0]])) : go(filePath(row[0]))), bar: measure, sort: measure, limit: 10,
  }).node;
}

function findFiles(pattern) {
  const input = document.getElementById('file-search');
  input.value = pattern;
  input.dispatchEvent(new Event('input'));
  input.focus();
}

function filePanel(index, fixed) {
  const name = NAMES[index];
  const detail = PAGE.details[index];
  const title = nameNode(name, 160);
  const panel = element('section', { class: 'panel', id: fixed ? null : 'file-panel' }, panelHead([title]));
  panel.append(fileFacts(index));
  if (detail && detail.calls) {
    panel.append(new Table(detail.calls, {
      caption: gettext('Calls on this file'), unit: (n) => ngettext('{n} kind of call', '{n} kinds of call', n), bar: PAGE.run.durations ? 'total_time_ns' : 'count',
      sort: PAGE.run.durations ? 'total_time_ns' : 'count',
    }).node);
  }
  if (!detail || !detail.sizes) panel.append(noDetail(index));
  else drawFileCharts(panel, detail, fixed);
  return panel;
}

function fileFacts(index) {
  const row = PAGE.files.rows.find((candidate) => candidate[0] === index);
  if (!row) return null;
  const wanted = ['kind', 'fs_type', 'size_bytes', 'read_bytes', 'written_bytes', 'access'];
  const facts = wanted.map((name) => [name, row[PAGE.files.columns.indexOf(name)]])
    .filter(([, value]) => value !== null && value !== undefined && value !== '')
    .map(([name, value]) => element('div', {}, element('dt', { text: columnLabel(name) }), element('dd', {}, cellContent(columnKind(name), value, name))));
  return element('dl', { class: 'facts inline' }, facts);
}

// Details are kept for the files that cost most; for the others, the command that shows the same.
function noDetail(index) {
  const note = element('div', { class: 'note' }, element('p', { text: gettext('This page has sizes, timeline and offsets of the costliest files only. For this file use:') }));
  if ((PAGE.cut || []).includes(index)) return note;
  const command = 'iodock show timeline ' + shellWord(PAGE.run.store) + ' --file ' + shellWord(NAMES[index]);
  note.append(element('pre', {}, element('code', { text: command })));
  return note;
}

function drawFileCharts(panel, detail, fixed) {
  if (detail.sizes.rows.length) placeChart(panel, histogramChart(detail.sizes), fixed);
  else panel.append(element('p', { class: 'empty', text: gettext('No bytes were read from or written to this file.') }));
  if (detail.timeline && detail.timeline.rows.length) timelineWithChoice(panel, detail.timeline, fixed);
  if (detail.offsets && ((detail.offsets.points || []).length || (detail.offsets.cells || []).length)) {
    placeChart(panel, offsetsChart(detail.offsets), fixed);
  }
}
