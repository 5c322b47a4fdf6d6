// States of one file server along the run: a band for each, told apart by height as well as colour.

const STATE_HEIGHTS = { healthy: 0.25, busy: 0.4, degraded: 0.7, failover: 0.85, overload: 1, stall: 1, 'no-usual': 0.12, 'no-samples': 0 };

function drawServerStates(chart, one, spanNs) {
  const x = linearScale(0, spanNs, chart.left, chart.plotRight);
  const y = linearScale(0, 1, chart.plotBottom, chart.top + 2);
  chart.add(line(chart.left, y(0), chart.plotRight, y(0), 'axis'));
  for (const [begin, end, state, called] of one.parts) {
    const height = STATE_HEIGHTS[state] || 0;
    const width = Math.max(1, x(Math.min(end, spanNs)) - x(begin));
    if (height) chart.add(shape('rect', { x: x(begin).toFixed(1), y: y(height).toFixed(1), width: width.toFixed(1), height: (y(0) - y(height)).toFixed(1), class: 'state-' + state }));
    if (width > 7 * called.length) chart.add(textAt(x(begin) + 4, y(0) - 4, called, 'start', height > 0.5 ? 'tick on-band' : 'tick'));
  }
}

function serverStatesChart(one, spanNs) {
  const place = (step) => one.parts[step][0] / (spanNs || 1);
  const said = (part) => part[3] + ': ' + timeText(part[0]) + ' – ' + timeText(part[1]);
  return new Chart({
    title: gettext('State of {server} ({file_system})', { server: visibleName(one.server), file_system: visibleName(one.file_system) }),
    describe: one.parts.slice(0, 6).map(said).join('; '),
    height: 52,
    bottom: 8,
    left: 82,
    steps: one.parts.length,
    place,
    stepAt: (share) => one.parts.reduce((found, part, step) => (part[0] <= share * spanNs ? step : found), 0),
    readout: (step) => said(one.parts[step]),
    draw: (chart) => drawServerStates(chart, one, spanNs),
  });
}
