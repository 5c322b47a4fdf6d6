// The flame graph of the report, drawn from `PAGE.flame`: boxes in the order of a walk, each with its weights.

const FLAME_ROW = 18;

const FLAME_WEIGHTS = {
  time: { name: gettext('time'), text: timeText },
  bytes: { name: gettext('bytes'), text: bytesText },
  calls: { name: gettext('calls'), text: grouped },
};

// Where each box begins: children stand side by side from the left edge of the box around them.
function flamePlaces(column) {
  const begins = [0];
  return PAGE.flame.boxes.map((box) => {
    const from = begins[box[0]];
    begins[box[0]] = from + box[column];
    begins[box[0] + 1] = from;
    return from;
  });
}

function flameFrame(box, from, weight, column) {
  const whole = PAGE.flame.boxes[0][column] || 1;
  const [kind, title] = PAGE.flame.frames[box[1]];
  const name = title === '' ? gettext('All') : visibleName(title);
  const said = `${name}: ${FLAME_WEIGHTS[weight].text(box[column])}, ${shareText(box[column] / whole)}`;
  return shape('svg', {
    class: `frame of-${kind}`, x: `${(from * 100) / whole}%`, width: `${(box[column] * 100) / whole}%`, y: box[0] * FLAME_ROW,
    height: FLAME_ROW, overflow: 'hidden', tabindex: '-1', role: 'button', 'aria-label': said,
    'data-name': name, 'data-depth': box[0], 'data-weight': box[column],
  }, shape('title', { text: said }), shape('rect', { width: '100%', height: FLAME_ROW }), shape('text', { x: 4, y: 13, text: name }));
}

function flameDrawing(weight, said) {
  const column = 2 + PAGE.flame.weights.indexOf(weight);
  const places = flamePlaces(column);
  const boxes = PAGE.flame.boxes.map((box, index) => [box, places[index]]).filter(([box], index) => !index || box[column] > 0);
  const frames = boxes.map(([box, from]) => flameFrame(box, from, weight, column));
  const height = FLAME_ROW * (1 + Math.max(...boxes.map(([box]) => box[0])));
  const flame = new Flame(frames, (found) => { said.textContent = found; });
  const tell = (event) => {
    const frame = event.target.closest('.frame');
    if (frame) said.textContent = frame.getAttribute('aria-label');
  };
  const node = shape('svg', { class: 'flame', width: '100%', height, role: 'group', 'aria-label': gettext('Flame graph'), onfocusin: tell, onmouseover: tell }, frames);
  return { node, flame };
}

function drawFlame(parent) {
  const holder = element('div');
  const said = element('p', { class: 'readout', role: 'status' });
  const words = element('input', { type: 'search', 'aria-label': gettext('Part of a name of a program, function, call or file'), placeholder: gettext('Search'), oninput: () => drawn.flame.search(words.value) });
  let drawn;
  const show = (weight) => {
    drawn = flameDrawing(weight, said);
    replaceContent(holder, drawn.node);
    said.textContent = '';
    if (words.value) drawn.flame.search(words.value);
  };
  const all = () => {
    words.value = '';
    drawn.flame.zoom(0);
    drawn.flame.search('');
  };
  const weights = PAGE.flame.weights;
  parent.append(
    element('div', { class: 'flame-bar no-print' },
      weights.length > 1 && choice(gettext('Quantity that determines the width of a box'), weights.map((one) => [one, FLAME_WEIGHTS[one].name]), weights[0], show),
      element('div', { class: 'search' }, words), element('button', { type: 'button', class: 'quiet', text: gettext('Show all'), onclick: all })),
    said, holder);
  parent.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') all();
    else if (event.key === '/' && event.target !== words) words.focus();
    else return;
    event.preventDefault();
  });
  show(weights[0]);
}
