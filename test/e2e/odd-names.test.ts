import test from 'ava';
import { buildExecutables } from '../../tools/build.ts';
import { IS_LONG } from '../support/suite-part.ts';
import { waitUntil } from '../support/wait-until.ts';
import { placeOf } from './support/fault-trial.ts';
import { runCli } from './support/run-cli.ts';
import type { AttachedPod } from './support/scene-node.ts';
import { openTrial, type Trial } from './support/trial.ts';

// Names of links are bytes. Whoever may rename a link chooses them: a Pod with NET_ADMIN in its own namespace, any
// program of the node in the host's. Neither blinds the diagnosis of the others, nor stops the repair of the others.

/** As a shell word: bytes that no UTF-8 text has. */
const ODD = '"$(printf \'\\377\\376\')"';
/** Clears a terminal. */
const POISON = '"$(printf \'p\\033[2J\\377\')"';

let trial: Trial;
let pod: AttachedPod;
let other: AttachedPod;

test.before(async (t) => {
  t.timeout(240_000);
  await buildExecutables(['tke-eni']);
  trial = await openTrial({ ruleMode: 'compact' });
  pod = await trial.addPod();
  other = await trial.addPod();
  await other.netns.run(['sh', '-c', `ip link set eth0 down && ip link set eth0 name ${ODD} && ip link set ${ODD} up`]);
  await other.netns.run(['sh', '-c', `ip link add ${POISON} type veth peer name x1`]);
  await trial.node.netns.run(['sh', '-c', `ip link add ${POISON} type bridge`]);
});
test.after.always(() => trial?.close());

const LINES = [
  ...['status', 'pool', 'pods', 'enis', 'doctor', 'diff', 'check', 'links --all', 'addrs --all', 'routes --all'],
  ...['rules --all', 'neigh --all', 'dump', 'dump -o ip', 'dump -o ip --stand-ins', 'graph -o svg'],
  ...[
    'graph -o html',
    'top --once',
    'events',
    'links --all -o json',
    'dump -o json',
    'doctor -o yaml',
    'graph -o json',
  ],
];

/** The commands that fail, answer "cannot judge", or print a byte that a terminal would interpret or that is not UTF-8. */
async function faultsOf(lines: readonly string[]): Promise<readonly string[]> {
  const faults: string[] = [];
  for (const line of lines) {
    const { code, stdout, stderr } = await runCli(placeOf(trial), ...line.split(' '));
    if (code !== 0 && code !== 1) faults.push(`${line}: ended with ${code}: ${stderr}`);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are looked for.
    const bad = /[^\n]{0,40}[\u0000-\u0008\u000b-\u001f\u007f-\u009f\ud800-\udfff][^\n]{0,20}/u.exec(stdout + stderr);
    if (bad !== null) faults.push(`${line}: ${JSON.stringify(bad[0])}`);
  }
  return faults;
}

test.serial('tke-eni: answers about the node and another Pod while a Pod has links of any bytes', async (t) => {
  t.timeout(120_000);
  t.deepEqual(await faultsOf([...LINES, `explain default/${pod.name}`, `explain default/${other.name}`]), []);
  const well = await runCli(placeOf(trial), 'explain', `default/${pod.name}`, '--to', trial.vpc.outside.ip);
  t.is(well.code, 0, well.stdout + well.stderr);
  t.true((await runCli(placeOf(trial), 'links', '--all')).stdout.includes('p\\x1b[2J\\xff'));
});

test.serial('agent: an ENI whose name is no text works, and does not stop the others', async (t) => {
  t.timeout(120_000);
  const [first, second] = trial.enis;
  const ifname = first?.ifname ?? '';
  const { netns } = trial.node;
  await netns.run([
    'sh',
    '-c',
    `ip link set ${ifname} down && ip link set ${ifname} name ${ODD} && ip link set ${ODD} up`,
  ]);
  await netns.run([
    'sh',
    '-c',
    `ip link set ${second?.ifname} down; ip rule flush; ip rule add pref 32766 lookup main`,
  ]);
  await netns.nft('flush ruleset\n');
  await waitUntil(() => pod.netns.ping(trial.vpc.outside.ip), { what: `packets of ${pod.ip}` });
  const added = [await trial.addPod(), await trial.addPod(), await trial.addPod(), await trial.addPod()];
  for (const each of added) t.true(await each.netns.ping(trial.vpc.outside.ip), each.ip);
  const lines = IS_LONG ? LINES : LINES.filter((_, index) => index % 4 === 0);
  t.deepEqual(await faultsOf([...lines, `explain default/${pod.name}`]), []);
  const status = await runCli(placeOf(trial), 'status');
  t.regex(status.stdout, /interface name "\\xff\\xfe" of an ENI cannot be written in nftables/);
  t.false(/PlanError|INVALID_NAME/.test(trial.lastWords()), trial.lastWords());
  for (const each of added) await trial.delete(each);
});
