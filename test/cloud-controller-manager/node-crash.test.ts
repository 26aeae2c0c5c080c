import test from 'ava';
import type { KubeObject } from '../../kube/kube-client.ts';
import { partOf } from '../support/suite-part.ts';
import { NodeWorld, UNINITIALIZED } from './node-world.ts';
import type { Crash } from './process-lives.ts';

const FLAGS = ['--vpc-id=vpc-00000001', '--zone-labels=number', '--expect-routes=true'];
const SHUTDOWN = 'node.cloudprovider.kubernetes.io/shutdown';
const STOPPED = 'ins-stopped1';
const SECOND_MS = 1_000;
const LIMIT_MS = 15 * 60 * SECOND_MS;
const FOREIGN = {
  aws: { providerID: 'aws:///eu-west-1/i-0123' },
  native: { providerID: 'tencentcloud://kn-aaaa0001' },
  super: { labels: { 'node.kubernetes.io/instance-type': 'eklet' } },
} as const;

/** What a life left: the states of each Node one after the other, the events, and what never came to be. */
type Left = {
  readonly states: Readonly<{ [name: string]: readonly string[] }>;
  readonly reasons: readonly string[];
  readonly faults: readonly string[];
  readonly isCrashDone: boolean;
};

/** One Node is initialised, one is shut down and comes back, one is gone, and some are of others; a process follows each that died. */
async function live(crash: Crash | undefined): Promise<Left> {
  const world = await NodeWorld.start(...FLAGS);
  const { scene, lives } = world;
  const states: { [name: string]: readonly string[] } = {};
  scene.server.api.store.subscribe('/nodes', ({ type, object }) => {
    const { name } = object.metadata;
    states[name] = [...(states[name] ?? []), type === 'DELETED' ? type : stateOf(object)];
  });
  const faults: string[] = [];
  const until = async (what: string, holds: () => boolean): Promise<void> => {
    for (let ms = 0; !holds(); ms += SECOND_MS) {
      if (ms >= LIMIT_MS) return void faults.push(`${what} never`);
      if (lives.isOver) await world.lead(...FLAGS);
      await world.advance(SECOND_MS);
    }
  };
  const rest = async (ms: number): Promise<void> => {
    const endMs = scene.clock.monotonicMs() + ms;
    await until('the end of a rest', () => scene.clock.monotonicMs() >= endMs);
  };
  const hasTaint = (name: string, key: string) =>
    world.node(name)?.taints.some((taint) => taint['key'] === key) === true;
  await world.joinInstance('stays', 'ins-stays001');
  await world.joinInstance('gone', 'ins-gone0001');
  await world.joinInstance('stopped', STOPPED);
  for (const [name, spec] of Object.entries(FOREIGN))
    await world.join(name, { ...spec, taints: [UNINITIALIZED], isReady: false });
  const isSeen = (name: string) => world.node(name)?.annotations['tke.cloud.tencent.com/seen-instance'] !== undefined;
  await rest(5 * 60 * SECOND_MS);
  const before = { ...lives.made };
  if (crash !== undefined) lives.crash = { ...crash, at: before[crash.of] + crash.at };
  await world.lead(...FLAGS);
  const address = world.addInstance('ins-fresh001', { publicIps: ['203.0.113.9'] });
  const annotations = { 'alpha.kubernetes.io/provided-node-ip': address };
  await world.join('fresh', { taints: [UNINITIALIZED], annotations, isReady: false });
  await until('fresh is initialised', () => world.node('fresh')?.isUninitialized === false);
  await until('all are seen', () => ['stays', 'gone', 'stopped'].every(isSeen));
  const instance = scene.host.model.state.instances.get(STOPPED);
  if (instance !== undefined) instance.state = 'STOPPED';
  await world.setReady('stopped', 'Unknown');
  await world.terminate('gone', 'ins-gone0001');
  await until('the taint is there', () => hasTaint('stopped', SHUTDOWN));
  await until('gone is deleted', () => world.node('gone') === undefined);
  if (instance !== undefined) instance.state = 'RUNNING';
  await world.setReady('stopped', 'True');
  await until('the taint is gone', () => !hasTaint('stopped', SHUTDOWN));
  await rest(60 * SECOND_MS);
  await world.stop();
  const reasons = scene.server.objects('events').map((event) => `${event['reason']} ${event['count'] ?? 1}`);
  return { states, reasons: reasons.sort(), faults, isCrashDone: lives.crash === undefined };
}

/** A Node without what differs from one run to the next. */
function stateOf({ metadata, ...rest }: KubeObject): string {
  const { labels, annotations } = metadata;
  return JSON.stringify({ labels, annotations, ...rest }).replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME');
}

const KINDS = ['change', 'read'] as const;
const MOMENTS = ['before', 'after'] as const;
const CASES = KINDS.flatMap((of) => MOMENTS.map((moment) => ({ of, moment })));

for (const { of, moment } of partOf(CASES, (one) => one.of === 'change' && one.moment === 'after')) {
  test(`runNodeController, runLifecycleController: the same states of Nodes when the process dies ${moment} each call to ${of}`, async (t) => {
    const { isCrashDone: _, ...expected } = await live(undefined);
    t.deepEqual(expected.faults, []);
    // A process that starts while the instance is gone finds that out for a Node that waits for its deletion.
    const allowed = new Set([...expected.reasons, 'InstanceUnknown 1']);
    t.deepEqual(expected.states['gone']?.at(-1), 'DELETED');
    let at = 0;
    for (;;) {
      at += 1;
      const { states, reasons, faults, isCrashDone } = await live({ of, at, moment });
      const about = `dead ${moment} call ${at} to ${of}`;
      t.deepEqual(faults, [], about);
      t.deepEqual(states, expected.states, about);
      t.true(
        reasons.every((reason) => allowed.has(reason)),
        `${about}: ${reasons.join()}`,
      );
      if (!isCrashDone) break;
    }
    t.true(at > 5, `only ${at} calls`);
  });
}
