// The whole run over time, its sizes, its processes, its failures.

function drawTime(parent) {
  if (!PAGE.timeline || !PAGE.timeline.rows.length) {
    parent.append(element('p', { class: 'empty', text: gettext('The times of the transfers are unknown: either no bytes were read or written, or the source has no times.') }));
    drawServers(parent);
    return;
  }
  timelineWithChoice(parent, PAGE.timeline);
  drawServers(parent);
  drawSampleSeries(parent);
}

// States and curves of the file servers, as the site's monitor read them, under the run's own.
function drawServers(parent) {
  if (!PAGE.servers) return;
  parent.append(element('h3', { text: gettext('The file servers during the run') }));
  for (const sentence of PAGE.servers.said) parent.append(element('p', { class: 'note', text: sentence }));
  if (!PAGE.timeline) return;
  const span = PAGE.timeline.intervals * PAGE.timeline.every_ns;
  for (const one of PAGE.servers.states) placeChart(parent, serverStatesChart(one, span));
  for (const series of PAGE.servers.curves) placeChart(parent, sampleChart(series, span));
}

function drawSampleSeries(parent) {
  if (!(PAGE.samples || []).length) return;
  parent.append(element('h3', { text: gettext('The machine during the run') }), element('p', { class: 'note', text: gettext('Sampled once per second, for the whole machine: these numbers include other programs.') }));
  const span = PAGE.timeline.intervals * PAGE.timeline.every_ns;
  for (const series of PAGE.samples) placeChart(parent, sampleChart(series, span));
}

function drawSizes(parent) {
  if (PAGE.sizes && PAGE.sizes.rows.length) placeChart(parent, histogramChart(PAGE.sizes));
  else parent.append(element('p', { class: 'empty', text: gettext('No bytes were read or written.') }));
}

function drawProcesses(parent) {
  const depth = new Map(PAGE.processes.rows.map((row, index) => [row, PAGE.processes.depth[index]]));
  if (!PAGE.processes.rows.length) {
    parent.append(element('p', { class: 'empty', text: gettext('No processes are known.') }));
    return;
  }
  const table = new Table(PAGE.processes, {
    caption: gettext('I/O by process'), unit: (n) => ngettext('{n} process', '{n} processes', n), bar: PAGE.run.durations ? 'total_time_ns' : 'count',
    limit: 20,
    row: (node, row, drawn) => {
      if (drawn.sortColumn >= 0) return;
      node.cells[0].style.setProperty('--depth', Math.min(12, depth.get(row)));
      node.cells[0].title = gettext('level {depth} of the tree', { depth: depth.get(row) });
    },
  });
  const asTree = element('button', { type: 'button', class: 'quiet no-print', text: gettext('Order as a tree'), onclick: () => {
    table.sortColumn = -1;
    table.fillBody();
  } });
  parent.append(asTree, table.node);
}

function drawRanks(parent) {
  if (!PAGE.ranks || PAGE.ranks.rows.length < 2) return;
  const measure = PAGE.run.durations ? 'total_time_ns' : 'count';
  parent.append(new Table(PAGE.ranks, { caption: gettext('MPI ranks'), unit: (n) => ngettext('{n} rank', '{n} ranks', n), bar: measure, limit: 20 }).node);
}

function drawFailures(parent) {
  if (!PAGE.failures.rows.length) {
    parent.append(element('p', { class: 'empty', text: gettext('No call failed.') }));
    return;
  }
  parent.append(new Table(PAGE.failures, { caption: gettext('Failures by error'), unit: (n) => ngettext('{n} kind of failure', '{n} kinds of failure', n), bar: 'count', sort: 'count', limit: 15 }).node);
}
