// The whole run over time, its sizes, its processes, its failures.

function drawTime(parent) {
  if (!PAGE.timeline || !PAGE.timeline.rows.length) {
    parent.append(element('p', { class: 'empty', text: words('time.none') }));
    return;
  }
  timelineWithChoice(parent, PAGE.timeline);
  drawSampleSeries(parent);
}

function drawSampleSeries(parent) {
  if (!(PAGE.samples || []).length) return;
  parent.append(element('h3', { text: words('samples.title') }), element('p', { class: 'note', text: words('samples.note') }));
  const span = PAGE.timeline.intervals * PAGE.timeline.every_ns;
  for (const series of PAGE.samples) placeChart(parent, sampleChart(series, span));
}

function drawSizes(parent) {
  if (PAGE.sizes && PAGE.sizes.rows.length) placeChart(parent, histogramChart(PAGE.sizes));
  else parent.append(element('p', { class: 'empty', text: words('sizes.none') }));
}

function drawProcesses(parent) {
  const depth = new Map(PAGE.processes.rows.map((row, index) => [row, PAGE.processes.depth[index]]));
  if (!PAGE.processes.rows.length) {
    parent.append(element('p', { class: 'empty', text: words('processes.none') }));
    return;
  }
  const table = new Table(PAGE.processes, {
    caption: words('processes.caption'), unit: 'unit.processes', bar: PAGE.run.durations ? 'total_time_ns' : 'count',
    limit: 20,
    row: (node, row, drawn) => {
      if (drawn.sortColumn >= 0) return;
      node.cells[0].style.setProperty('--depth', Math.min(12, depth.get(row)));
      node.cells[0].title = words('processes.depth', { depth: depth.get(row) });
    },
  });
  const asTree = element('button', { type: 'button', class: 'quiet no-print', text: words('processes.as_tree'), onclick: () => {
    table.sortColumn = -1;
    table.fillBody();
  } });
  parent.append(asTree, table.node);
}

function drawRanks(parent) {
  if (!PAGE.ranks || PAGE.ranks.rows.length < 2) return;
  const measure = PAGE.run.durations ? 'total_time_ns' : 'count';
  parent.append(new Table(PAGE.ranks, { caption: words('ranks.caption'), unit: 'unit.ranks', bar: measure, limit: 20 }).node);
}

function drawFailures(parent) {
  if (!PAGE.failures.rows.length) {
    parent.append(element('p', { class: 'empty', text: words('failures.none') }));
    return;
  }
  parent.append(new Table(PAGE.failures, { caption: words('failures.caption'), unit: 'unit.failures', bar: 'count', sort: 'count', limit: 15 }).node);
}
