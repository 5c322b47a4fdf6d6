// Starts the page: draws the sections, follows the address (#/call/NAME, #/file/N) and prepares the printed panels.

function section(id) {
  return document.getElementById(id);
}

function go(path) {
  if (location.hash === path) follow(true);
  else location.hash = path;
}

function parsePath() {
  const match = /^#\/(call|file)\/(.+)$/.exec(location.hash);
  if (!match) return null;
  try {
    return { what: match[1], value: decodeURIComponent(match[2]) };
  } catch {
    return null; // an address typed by hand that does not decode opens nothing
  }
}

function showPanel(holder, panel, focus) {
  replaceContent(holder, panel);
  if (!focus) return;
  panel.querySelector('.panel-title').focus({ preventScroll: true });
  panel.scrollIntoView({ block: 'start', behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth' });
}

function openCall(call, focus) {
  if (PAGE.calls.rows.some((row) => row[0] === call)) showPanel(section('call-holder'), callPanel(call), focus);
}

function openFile(index, focus) {
  if (Number.isInteger(index) && index >= 0 && index < NAMES.length) showPanel(section('file-holder'), filePanel(index), focus);
}

function follow(focus) {
  const path = parsePath();
  if (!path) return;
  if (path.what === 'call') openCall(path.value, focus);
  else openFile(Number(path.value), focus);
}

// On paper nothing can be opened, so the costliest files' panels are there in full.
function preparePrint() {
  const holder = section('print-panels');
  const files = PAGE.print_files || [];
  if (!files.length) return;
  holder.append(element('h2', { text: gettext('The costliest files in detail') }));
  for (const index of files) holder.append(filePanel(index, 660));
}

function start() {
  drawSplitBar();
  linkCosts();
  drawCalls(section('calls-body'));
  drawFiles(section('files-body'));
  if (PAGE.flame) drawFlame(section('flame-body'));
  drawTime(section('time-body'));
  drawSizes(section('sizes-body'));
  drawProcesses(section('processes-body'));
  drawRanks(section('processes-body'));
  drawFailures(section('failures-body'));
  if (PAGE.calls.rows.length && PAGE.first_call) openCall(PAGE.first_call, false);
  if (PAGE.first_file !== null && PAGE.first_file !== undefined) openFile(PAGE.first_file, false);
  preparePrint();
  window.addEventListener('hashchange', () => follow(true));
  follow(true);
  document.documentElement.setAttribute('data-ready', 'yes');
}

start();
