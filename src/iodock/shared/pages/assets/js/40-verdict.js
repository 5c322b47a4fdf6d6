// The bar of wall time and the ways from the verdict into the drill-down. The words themselves are in the page already.

function drawSplitBar() {
  const holder = document.getElementById('split-bar');
  const parts = (PAGE.verdict && PAGE.verdict.split) || [];
  if (!holder || !parts.length) return;
  const whole = PAGE.verdict.whole_ns || 1;
  let position = 0;
  const svg = shape('svg', { viewBox: '0 0 1000 36', preserveAspectRatio: 'none', class: 'split', 'aria-hidden': 'true' });
  svg.append(patterns('split-hatch'), shape('rect', { x: 0, y: 0, width: 1000, height: 36, class: 'part-rest' }));
  for (const part of parts) {
    const width = Math.max(0, Math.min(1000 - position, (part.ns / whole) * 1000));
    svg.append(shape('rect', {
      x: position.toFixed(2), y: 0, width: width.toFixed(2), height: 36, class: 'part-' + part.name,
    }));
    position += width;
  }
  replaceContent(holder, svg);
}

// Costs carry data-call and data-file in the static page; here they become ways into the panels.
function linkCosts() {
  document.querySelectorAll('[data-open]').forEach((node) => {
    node.addEventListener('click', (event) => {
      event.preventDefault();
      go(node.getAttribute('data-open'));
    });
  });
}
