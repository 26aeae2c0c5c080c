import test from 'ava';
import { type Command, defineCommand } from '../../../cli/command/command.ts';
import { runProgram } from '../../../cli/program/run-program.ts';
import { UserError } from '../../../runtime/user-error.ts';
import { memoryPorts, SAMPLE } from './fixtures.ts';

async function runSample(argv: readonly string[], commands = SAMPLE, isRoot = true) {
  const ports = memoryPorts({ isRoot });
  const code = await runProgram(argv, ports, commands);
  return { code, ...ports.printed };
}

test('runProgram: hands the command its arguments under their declared names, defaults filled in', async (t) => {
  const { code, stdout } = await runSample(['walk', 'web', '-ojson', '--kind=route,rule', '--depth', '3', '-a']);
  t.is(code, 0);
  t.deepEqual(JSON.parse(stdout).args, {
    ...{ pod: 'web', output: 'json', kind: ['route', 'rule'], depth: 3, all: true },
  });
  const defaults = JSON.parse((await runSample(['walk', 'web', '10.0.0.1'])).stdout);
  t.deepEqual(defaults.args, { pod: 'web', to: '10.0.0.1', output: 'table', kind: [], depth: 16, all: false });
  t.deepEqual(defaults.global, {
    ...{
      socket: '/run/tke-eni/agent.sock',
      stateDir: '/run/tke-eni',
      agentTimeoutMs: 200,
      hostRoot: '/',
      kubeconfig: '',
    },
  });
});

const same = test.macro({
  exec: async (t, argv: readonly string[]) => {
    const { code, stdout } = await runSample(argv);
    t.is(code, 0);
    const { args, global } = JSON.parse(stdout);
    t.is(args.pod, 'web');
    t.is(args.output, 'wide');
    t.is(global.netns, 'node-1');
  },
  title: (_, argv: readonly string[]) => `runProgram: takes «${argv.join(' ')}»`,
});

test(same, ['walk', 'web', '-o', 'wide', '--netns', 'node-1']);
test(same, ['walk', '-owide', 'web', '--netns=node-1']);
test(same, ['--netns', 'node-1', 'walk', '--output=wide', 'web']);
test(same, ['--netns=node-1', '-o', 'wide', 'walk', 'web']);
test(same, ['walk', '--netns', 'other', '-o', 'json', '--netns', 'node-1', '-o', 'wide', '--', 'web']);

test('runProgram: runs commands of two words', async (t) => {
  t.deepEqual(await runSample(['door', 'shut']), { code: 0, stdout: 'shut\n', stderr: '' });
  t.deepEqual(await runSample(['door', '--color=never', 'open']), { code: 0, stdout: 'open\n', stderr: '' });
});

const refuses = test.macro({
  exec: async (t, argv: readonly string[], wanted: string) => {
    t.deepEqual(await runSample(argv), { code: 64, stdout: '', stderr: wanted });
  },
  title: (_, argv: readonly string[]) => `runProgram: refuses «${argv.join(' ')}»`,
});

test(refuses, ['wlak'], 'tke-eni: there is no command "wlak"; did you mean "walk"?\n  next: see tke-eni help\n');
test(refuses, ['frobnicate'], 'tke-eni: there is no command "frobnicate"\n  next: see tke-eni help\n');
test(refuses, ['door'], 'tke-eni: door needs another word: door open, door shut\n  next: see tke-eni help\n');
test(
  refuses,
  ['door', 'opne'],
  'tke-eni: there is no command "door opne"; did you mean "door open"?\n  next: see tke-eni help\n',
);
test(
  refuses,
  ['--netns'],
  'tke-eni: the command line has 2 faults:\n  - a command is missing\n  - --netns needs a value (NETNS)\n  next: see tke-eni help\n',
);
test(
  refuses,
  ['walk', '--tabel=3', '--depth=deep', '-o', 'jsno', '--kind', 'route,wire', '-x'],
  `tke-eni: the command line has 6 faults:
  - walk has no option --tabel; did you mean --table?
  - --depth takes a number, not "deep"
  - --output takes table, wide or json, not "jsno"; did you mean "json"?
  - --kind takes route or rule, not "wire"
  - walk has no option -x
  - walk needs <pod>: Pod, address or veth
  next: see tke-eni walk --help
`,
);
test(
  refuses,
  ['walk', 'a', 'b', 'c', '--no-table'],
  `tke-eni: the command line has 2 faults:
  - --table cannot be negated
  - walk takes <pod> <to> only; "c" is one too many
  next: see tke-eni walk --help
`,
);
test(
  refuses,
  ['walk', 'a', '--color=red'],
  'tke-eni: --color takes auto, always or never, not "red"\n  next: see tke-eni walk --help\n',
);

test('runProgram: prints help and release whatever else is on the line', async (t) => {
  t.regex((await runSample(['walk', '--help', '--nonsense'])).stdout, /^tke-eni walk: walk the way/);
  t.regex((await runSample(['-h'])).stdout, /\nCommands\n {2}walk +walk the way/);
  t.regex((await runSample([])).stdout, /\nCommands\n/);
  t.regex((await runSample(['--version'])).stdout, /^\d+\.\d+\.\d+\S*\n$/);
  t.is((await runSample(['wlak', '--help'])).code, 64);
});

function failing(error: unknown, needs?: string): readonly Command[] {
  const command = defineCommand({
    ...{ name: 'fail', summary: 'fail', description: '', positionals: {}, options: {}, examples: [] },
    ...(needs === undefined ? {} : { needs }),
    load: async () => ({ run: () => Promise.reject(error) }),
  });
  return [command];
}

test('runProgram: prints what could not be done and what to do next, and ends with 2', async (t) => {
  const error = new UserError('NOT_FOUND', 'no Pod is called "web"', 'see tke-eni pods');
  t.deepEqual(await runSample(['fail'], failing(error)), {
    ...{ code: 2, stdout: '', stderr: 'tke-eni: no Pod is called "web"\n  next: see tke-eni pods\n' },
  });
  const colored = await runSample(['fail', '--color=always'], failing(error));
  t.is(
    colored.stderr,
    '\u001b[31mtke-eni:\u001b[39m no Pod is called "web"\n  \u001b[36mnext:\u001b[39m see tke-eni pods\n',
  );
});

test('runProgram: takes the terminal out of what others named', async (t) => {
  const { stderr } = await runSample(
    ['fail'],
    failing(new UserError('NOT_FOUND', 'no \u001b]0;x\u0007Pod', 'see \u001b[2J')),
  );
  t.is(stderr, 'tke-eni: no \\x1b]0;x\\x07Pod\n  next: see \\x1b[2J\n');
});

test('runProgram: says what needs root to somebody who is not, wherever the kernel refused', async (t) => {
  const refused = new Error('reading failed', {
    cause: Object.assign(new Error('EACCES: open /run/x'), { code: 'EACCES' }),
  });
  const asUser = await runSample(['fail'], failing(refused, 'root: the state folder is for root only'), false);
  t.is(asUser.code, 2);
  t.is(
    asUser.stderr,
    "tke-eni: fail: EACCES: open /run/x\n  next: it needs root (the state folder is for root only): run it as root, `sudo tke-eni fail …`, or in the agent's container\n",
  );
  const asRoot = await runSample(['fail'], failing(refused), true);
  t.regex(asRoot.stderr, /root alone does not suffice here: look at capabilities and seccomp/);
});

test('runProgram: lets a fault of ours through', async (t) => {
  await t.throwsAsync(runSample(['fail'], failing(new TypeError('x is not a function'))), { instanceOf: TypeError });
});

test('runProgram: a choice of an earlier release is refused with what to take instead', async (t) => {
  const ports = memoryPorts({ isRoot: true });
  t.is(await runProgram(['graph', '-o', 'mermaid'], ports), 64);
  t.regex(ports.printed.stderr, /--output takes "mermaid" no longer: take svg, .*\n {2}next: see tke-eni graph --help/);
});
