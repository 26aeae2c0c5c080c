import test, { type ExecutionContext } from 'ava';
import { isObject, type NetnsView } from '../../sim/support/netns.ts';
import { buildExecutables } from '../../tools/build.ts';
import { IS_LONG, longTest, partOf } from '../support/suite-part.ts';
import { waitUntil } from '../support/wait-until.ts';
import { placeOf } from './support/fault-trial.ts';
import {
  FOREIGN_FAULTS,
  type ForeignFault,
  type ForeignScene,
  HARMLESS,
  IPV6_FAULTS,
  isShortForeignFault,
} from './support/foreign-faults.ts';
import { readForeignScene } from './support/foreign-scene.ts';
import { askCli, runCli } from './support/run-cli.ts';
import type { AttachedPod } from './support/scene-node.ts';
import { openTrial, type Trial } from './support/trial.ts';

// State of other programs that stops packets of Pods and is in no plan: doctor names it, explain fails and names it, and
// both are silent again when it is gone. One of each kind here; the suite `long` has all others, and types what doctor says.

/** How long a ping of a broken way waits: an answer takes microseconds. */
const LOST_AFTER_MS = 1_200;

let trial: Trial | undefined;
let pod: AttachedPod | undefined;

test.before(async (t) => {
  t.timeout(240_000);
  await buildExecutables(['tke-eni']);
  trial = await openTrial({ ruleMode: 'compact', isDual: true });
  pod = await trial.addPod();
  await trial.addPod();
  // A running agent repairs at once what is in its plan.
  await trial.killAgent();
});

test.after.always(() => trial?.close());

for (const fault of partOf([...FOREIGN_FAULTS, ...IPV6_FAULTS], isShortForeignFault)) {
  test.serial(`tke-eni doctor and explain: ${fault.name}`, async (t) => {
    t.timeout(60_000);
    if (trial === undefined || pod === undefined) throw new Error('there is no node');
    await tryFault(t, fault, await readForeignScene(trial, pod));
  });
}

for (const one of HARMLESS) {
  longTest.serial(`tke-eni explain: does not fail for what stops no packet: ${one.name}`, async (t) => {
    t.timeout(60_000);
    if (trial === undefined || pod === undefined) throw new Error('there is no node');
    const scene = await readForeignScene(trial, pod);
    const { target, source, netns } = wayOf(one, scene);
    await netns.run(['sh', '-e', '-c', one.inject(scene)]);
    try {
      t.true(await pod.netns.ping(target), 'packets flow');
      const { code, document } = await askCli(placeOf(trial), 'explain', source, '--to', target);
      t.is(code, 0, JSON.stringify(document));
    } finally {
      await netns.run(['sh', '-e', '-c', one.undo(scene)]);
    }
  });
}

/** What a fault cuts, and where its commands run. */
function wayOf(
  { cuts = 'outside', ...fault }: Omit<ForeignFault, 'finds'>,
  { trial, pod, ip6, nodeIp }: ForeignScene,
): { readonly target: string; readonly source: string; readonly netns: NetnsView } {
  const { ip, ipv6 } = trial.vpc.outside;
  return {
    target: { outside: ip, 'outside-ipv6': ipv6, node: nodeIp }[cuts],
    source: cuts === 'outside-ipv6' ? ip6 : pod.ip,
    netns: fault.in === 'pod' ? pod.netns : trial.node.netns,
  };
}

async function tryFault(t: ExecutionContext, fault: ForeignFault, scene: ForeignScene): Promise<void> {
  const { trial, pod } = scene;
  const place = placeOf(trial);
  const { target, source, netns } = wayOf(fault, scene);
  const { finds, explains = finds, exitCode = 1 } = fault;
  const ask = async () => {
    const doctor = await askCli(place, 'doctor');
    const explain = await askCli(place, 'explain', source, '--to', target);
    const found = findingsIn(doctor.document, finds);
    return {
      answers: [found.length > 0, findingsIn(explain.document, explains).length > 0, explain.code],
      cures: found.flatMap(({ fix }) => (Array.isArray(fix) ? fix.map(String) : [])).filter(isChange),
    };
  };
  const packetsFlow = () => waitUntil(() => pod.netns.ping(target), { what: 'packets after it', everyMs: 100 });
  t.true(await pod.netns.ping(target), 'packets flow before');
  try {
    await netns.run(['sh', '-e', '-c', fault.inject(scene)]);
    t.false(await pod.netns.ping(target, { waitMs: LOST_AFTER_MS }), 'packets are lost');
    const { answers, cures } = await ask();
    t.deepEqual(answers, [true, true, exitCode], 'doctor names it, explain names it and fails');
    if (IS_LONG && cures.length > 0) {
      for (const cure of cures) {
        if (cure === 'tke-eni repair') await runCli(place, 'repair');
        // A line may be another way to do what the one before it has done.
        else await trial.node.netns.tryRun(['sh', '-c', cure]);
      }
      await packetsFlow();
      t.deepEqual((await ask()).answers, [false, false, 0], `both are silent after ${cures.join('; ')}`);
    }
  } finally {
    // A cure may have taken away what this takes away.
    await netns.run(['sh', '-c', `${fault.undo(scene)} || :`]);
    if (fault.isPlanned === true) await runCli(place, 'repair');
  }
  await packetsFlow();
  if (IS_LONG) t.deepEqual((await ask()).answers, [false, false, 0], 'both are silent when it is gone');
}

/** Reports whether a line of a cure changes something: others show state, or are for people. */
function isChange(line: string): boolean {
  const command = line.replace(/^nsenter \S+ (-- )?/, '');
  return (
    /^(ip |tc |nft |iptables-|ip6tables-|sysctl -w |tke-eni repair)/.test(command) && !/ (show|list|-S) /.test(command)
  );
}

/** Lists the findings of an id anywhere in a document, errors and warnings. */
function findingsIn(value: unknown, id: string): readonly Readonly<Record<string, unknown>>[] {
  if (Array.isArray(value)) return value.flatMap((item) => findingsIn(item, id));
  if (!isObject(value)) return [];
  const nested = Object.values(value).flatMap((item) => findingsIn(item, id));
  return value['id'] === id && value['severity'] !== 'info' ? [value, ...nested] : nested;
}
