import type { RunResult } from '../../../sim/support/run.ts';
import { executablePath } from '../../support/executables.ts';
import { waitUntil } from '../../support/wait-until.ts';
import type { AgentStage, StagePod } from './agent-stage.ts';
import { type Shape, shapeOf } from './shape.ts';

/** The shape of each document, by the words that print it. */
export type Documents = Readonly<Record<string, Shape>>;

/** Objects whose names are data. */
const MAPS = ['.claims.byPhase', '.eips.byPhase'];
const LISTS = ['routes', 'rules', 'links', 'addrs', 'neigh'];
const POD = 'shop/cart-0';
/** Those of the doctor that look at nothing of the machine but the node of the stage. */
const CHECKS = 'agent,state-folder,enis,pod-links,differences';
const DIRECT_POD = 'shop/db-0';

/** Kinds of watched events that come with every Pod. */
const STEADY = ['add', 'del', 'route', 'rule'];

/** Commands for a node that is well. What of the kernel is printed as it is is asked for one Pod: kernels differ. */
const OF_NODE = [
  ...[
    'status',
    'pool',
    'pods',
    'enis',
    'events',
    'graph',
    'diff',
    'check',
    `doctor --only ${CHECKS}`,
    'repair --dry-run',
  ],
  ...[`explain ${POD}`, `explain ${DIRECT_POD}`],
  ...LISTS.map((list) => `${list} --owners --pod ${POD}`),
  'bench --count 1 --routes 10 --force',
];
/** Commands for one whose agent is dead and where something is wrong. */
const OF_BROKEN_NODE = [
  ...['status', 'pool', 'pods', 'enis', 'graph', 'diff', 'check', `doctor --only ${CHECKS}`, `explain ${POD}`],
  ...['repair --dry-run', 'repair'],
];

/**
 * Adds Pods, prints every document of the node, kills the agent, breaks something and prints again. `ask` is called
 * while the agent lives and has Pods.
 */
export async function recordDocuments<T>(
  stage: AgentStage,
  ask: (stage: AgentStage) => Promise<T>,
): Promise<{ readonly documents: Documents; readonly ops: T }> {
  const { node } = stage;
  const pods = [await stage.pod('cart-0'), await stage.pod('db-0')] as const;
  await node.add(pods[0].pod, pods[0].options('tke-route-eni'));
  await node.add(pods[1].pod, { ...pods[1].options('tke-direct-eni'), conf: directConf(stage) });
  const watched = await watch(stage);
  const ops = await ask(stage);
  const well = await printShapes(stage, OF_NODE);
  await node.killAgent();
  await breakNode(stage, pods[0]);
  const broken = await printShapes(stage, OF_BROKEN_NODE, { when: ', without an agent and with a fault' });
  return { documents: { ...watched, ...well, ...broken }, ops };
}

function directConf(stage: AgentStage): object {
  return stage.node.conf({ name: 'tke-direct-eni', type: 'tke-direct-eni' });
}

/** Takes away routes and a rule, on the node and in a Pod, and makes a Pod's link narrower. */
async function breakNode({ node }: AgentStage, { pod }: StagePod): Promise<void> {
  const [veth = ''] = await node.hostVeths();
  await node.netns.ip('route', 'flush', 'table', '3999');
  await node.netns.ip('rule', 'del', 'pref', '1537');
  await node.netns.ip('link', 'set', veth, 'mtu', '1300');
  await pod.netns.ip('route', 'del', 'default');
}

/** Runs commands one after the other and returns the shape of what each prints. */
export async function printShapes(
  stage: AgentStage,
  commands: readonly string[],
  { env = {}, when = '' }: { readonly env?: Readonly<Record<string, string>>; readonly when?: string } = {},
): Promise<Documents> {
  const shapes: Record<string, Shape> = {};
  for (const command of commands) {
    const result = await stage.cli([...command.split(' '), '-o', 'json'], { env });
    const shape = shapeOf(documentOf(command, result), MAPS);
    const isList = LISTS.some((list) => command.startsWith(list));
    const name = command.replace(/ --(region|only) .*/, '');
    shapes[`${name}${when}`] = { 'exit code': String(result.code), ...(isList ? onlyOurs(shape) : shape) };
  }
  return shapes;
}

/** Of lists, what `ip -j` does not have: the rest depends on the kernel, and another test compares it with that of `ip`. */
function onlyOurs(shape: Shape): Shape {
  return Object.fromEntries(Object.entries(shape).filter(([path]) => /^\[\]\.(owner|pod|family|netns)/.test(path)));
}

function documentOf(command: string, { code, stdout, stderr }: RunResult): unknown {
  try {
    return JSON.parse(stdout);
  } catch {
    throw new Error(`tke-eni ${command} exited with ${code} and printed no document:\n${stdout}\n${stderr}`);
  }
}

/** Follows what happens while a Pod comes and goes. */
async function watch(stage: AgentStage): Promise<Documents> {
  const { node } = stage;
  const { stateDir, socketPath } = node.agent;
  const argv = [executablePath('tke-eni'), 'watch', '-o', 'json', '--state-dir', stateDir, '--socket', socketPath];
  const child = node.netns.start([...stage.room.wrap, ...argv]);
  const lines = () =>
    child.stdout
      .split('\n')
      .slice(0, -1)
      .map((line): unknown => JSON.parse(line));
  const sees = (what: string) =>
    waitUntil(() => child.stdout.includes(what), {
      what: `${what} in a watch`,
      explain: () => child.stdout + child.stderr,
    });
  try {
    const { pod, options } = await stage.pod('guest-0');
    let tries = 0;
    const isOpen = async (): Promise<boolean> => {
      await node.netns.ip('rule', 'add', 'pref', `${2000 + tries++}`, 'from', '192.0.2.1', 'lookup', '100');
      return child.stdout.includes('192.0.2.1');
    };
    await waitUntil(isOpen, { what: 'an open watch', everyMs: 50 });
    await node.add(pod, options('tke-route-eni'));
    await sees('"kind":"add"');
    await node.delete(pod);
    await sees('"kind":"del"');
    // Of neighbours and links there are more on one run than on another.
    return { watch: shapeOf(lines().filter((line) => STEADY.includes(String(Object(line).kind)))) };
  } finally {
    await child.stop('SIGTERM');
  }
}
