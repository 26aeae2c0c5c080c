// Image after image is unpacked and each of its commands started: thirteen seconds of a core.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { run, tryRun } from '../../sim/support/run.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { openTerminal } from '../support/terminal.ts';
import { type OpenImages, openImages } from './support/open-images.ts';

// What the pages say to run by `kubectl exec` is run as it is printed, in a container of the image with an agent that serves.

const ROOT = join(import.meta.dirname, '..', '..');
const dir = createTempDir('image-commands');
let agent: Awaited<ReturnType<OpenImages['startAgent']>>;

test.before(async () => {
  agent = await (await openImages(dir, ['tke-eni-agent'])).startAgent();
});
test.after.always(async () => {
  await agent?.[Symbol.asyncDispose]();
  dir.close();
});

type ExecCommand = { readonly line: string; readonly target: string; readonly needsTerminal: boolean };

/** Lists what the pages run by `kubectl exec`; `…` stands for words, so that such a line is no command. */
function execCommands(): readonly ExecCommand[] {
  const pages = ['README.md', ...pagesBelow('docs'), ...pagesBelow('conf')];
  return pages.flatMap((page) => {
    const texts = readFileSync(join(ROOT, page), 'utf8').matchAll(/kubectl\b[^`\n|]* exec [^`\n|]* -- [^`\n]*/g);
    return [...texts]
      .map(([text]) => text.replace(/\s+# .*$/, '').trim())
      .filter((line) => !line.includes('…'))
      .map((line) => {
        const [, flags = '', target = ''] = /^kubectl -n kube-system exec (-\w+ )?(\S+) -- /.exec(line) ?? [];
        return { line, target, needsTerminal: /t/.test(flags) };
      });
  });
}

function pagesBelow(folder: string): readonly string[] {
  return readdirSync(join(ROOT, folder), { recursive: true })
    .map((name) => join(folder, String(name)))
    .filter((path) => path.endsWith('.md'));
}

/** The agent's Pod, as pages name it. */
const AGENT_POD = /^("\$pod"|AGENT|AGENT-POD|ds\/tke-eni-agent|tke-eni-agent-\w{5})$/;

const all = execCommands();
const commands = all.filter(({ target }) => AGENT_POD.test(target));

test('docs: name one other container than the agent’s to run something in', (t) => {
  t.true(commands.length > 5);
  const others = all.filter((command) => !commands.includes(command)).map(({ line }) => line);
  // What it prints: test/scheduler/certificates.test.ts.
  const print = '/usr/bin/tke-eni-ip-scheduler --print-kube-scheduler-config > kube-scheduler-configuration.yaml';
  t.deepEqual([...new Set(others)], [`kubectl -n kube-system exec deployment/tke-eni-ip-scheduler -- ${print}`]);
});

for (const { line, needsTerminal } of new Map(commands.map((command) => [command.line, command])).values()) {
  if (needsTerminal) continue;
  test.serial(`docs: ${line}`, async (t) => {
    const { code, stdout, stderr } = await runHere(line);
    // Here is no Pod, which is what a placeholder stands for.
    const needsPod = / [A-Z]+\/[A-Z]+$/.test(line);
    t.true(
      needsPod ? code === 2 && /NAMESPACE\/POD/.test(stderr) : code === 0 || code === 1,
      `${code}: ${stdout}${stderr}`,
    );
    if (needsPod) return;
    const [, file] = /> (\S+)$/.exec(line) ?? [];
    if (file === undefined) t.not(stdout, '');
    else t.true(statSync(dir.join(file)).size > 1_000, stderr);
  });
}

test.serial('docs: a command with -t runs in a terminal', async (t) => {
  const lines = commands.filter(({ needsTerminal }) => needsTerminal).map(({ line }) => line);
  t.deepEqual(lines, ['kubectl -n kube-system exec -it tke-eni-agent-x7k2p -- tke-eni top']);
  const [exec = [], words = ''] = [agent.execArgv, lines[0]?.split(' -- ')[1]];
  const argv = [...exec.slice(0, -1), '--tty', '--env', 'TERM=xterm', ...exec.slice(-1), ...words.split(' ')];
  await using terminal = await openTerminal(argv);
  await terminal.waitFor('the table', (screen) => screen.some((text) => /^CALLS/.test(text)));
  terminal.type('q');
  t.is(await terminal.exited, 0);
});

test.serial('bundle: fetched as the page says it is whole, and what the image lacks is no fault', async (t) => {
  const line = commands.find((command) => command.line.includes('bundle'))?.line ?? '';
  const { code, stderr } = await runHere(line);
  t.is(code, 0, stderr);
  const skipped = [...stderr.matchAll(/^tke-eni: skipped: (\S+): /gm)].map(([, part]) => part);
  t.deepEqual(skipped, ['logs/agent.log']);
  const names = await run(['tar', '-tzf', dir.join('bundle.tar.gz')]);
  for (const name of ['manifest.json', 'agent/pool.json', 'node/journal.json', 'graph.html', 'kernel/nft-ruleset.txt'])
    t.true(names.includes(`tke-eni-bundle/${name}\n`), names);
});

test.serial('graph: a file cannot be kept in the container, and the message says what can be done', async (t) => {
  const refused = await agent.exec('tke-eni', 'graph', '-f', 'node.html');
  t.is(refused.code, 2);
  t.regex(refused.stderr, /read-only file system[\s\S]*next: .*tke-eni graph -o html > node\.html/);
  const page = await agent.exec('tke-eni', 'graph', '-o', 'html', '-f', '-');
  t.is(page.stderr, '');
  t.regex(page.stdout, /^<!doctype html>/);
});

/** Runs a line of a page in a folder of the test, with `exec` into the container in place of the one of kubectl. */
function runHere(line: string) {
  const [, words = ''] = line.split(/ -- (.*)/);
  return tryRun(['sh', '-c', `${agent.execArgv.join(' ')} ${words}`], { cwd: dir.path, timeoutMs: 120_000 });
}
