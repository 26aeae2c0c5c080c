import test from 'ava';
import { seedList } from '../../../sim/support/seed.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import { tellingSeed } from '../../support/with-seed.ts';
import { ATTRIBUTES, EipScene, ID_LIST, POLICY } from './eip-scene.ts';

const ACTIONS = ['AllocateAddresses', 'AssociateAddress', 'DisassociateAddress', 'ReleaseAddresses'];
const FAULTS = [
  { kind: 'hang', after: true },
  { kind: 'reset' },
  { kind: 'error', code: 'InternalError', after: true },
  { kind: 'task', fate: 'fail' },
  { kind: 'error', code: 'RequestLimitExceeded' },
] as const;
const STEPS = 14;
/** One less than there are Pods: a node that has all of them cannot serve one. */
const MAX_EIPS = 5;

/** Pods come, move and go while ipamd dies and calls fail; returns what is wrong in the end. */
async function live(seed: number): Promise<readonly string[]> {
  const random = seededRandom(seed);
  const below = (count: number): number => Math.floor(random() * count);
  const scene = await EipScene.open({ eipsPerDay: 1_000 }, MAX_EIPS);
  const lent = [await scene.lend(), await scene.lend()];
  const pods = new Map<string, { readonly node: string; readonly index: number }>();
  const wishes = {
    kept: { [ATTRIBUTES]: '', [POLICY]: 'Never' },
    made: { [ATTRIBUTES]: '' },
    lent: { [ID_LIST]: lent.join(',') },
  };
  const kinds = ['kept', 'made', 'lent'] as const;
  scene.lead();
  for (let step = 0; step < STEPS; step++) {
    const kind = kinds[below(kinds.length)] ?? 'kept';
    const name = `${kind}-${below(2)}`;
    const fault = FAULTS[below(FAULTS.length)];
    if (random() < 0.4 && fault !== undefined) {
      scene.host.faults.add({ fault, actions: [ACTIONS[below(ACTIONS.length)] ?? ''], times: 1 });
    }
    if (pods.has(name)) {
      await scene.deletePod(name);
      pods.delete(name);
    } else {
      const node = random() < 0.5 ? 'n1' : 'n2';
      const used = new Set([...pods.values()].filter((one) => one.node === node).map((one) => one.index));
      const index = [0, 1, 2, 3, 4, 5, 6, 7, 8].find((one) => !used.has(one)) ?? 0;
      await scene.addPod(name, node, scene.ip(node, index), wishes[kind]);
      pods.set(name, { node, index });
    }
    await scene.until(() => false, below(20_000));
    if (random() < 0.3) scene.die();
  }
  const over = (node: string): number => [...pods.values()].filter((pod) => pod.node === node).length - MAX_EIPS;
  /** A node with more Pods than EIPs serves as many as it may, and the others say so. */
  const isAtRest = (): boolean => {
    const waiting = [...pods].filter(([name]) => !scene.isServed(name));
    const perNode = Map.groupBy(waiting, ([, { node }]) => node);
    return (
      waiting.every(([name]) => scene.reasonOf(name) === 'EIPLimitOfNode') &&
      [...perNode].every(([node, pods]) => pods.length <= over(node))
    );
  };
  const faults = (await scene.until(isAtRest)) ? [] : ['a Pod is not served in the end'];
  for (const name of pods.keys()) await scene.deletePod(name);
  await scene.until(() => false, 60_000);
  for (const kind of kinds) {
    for (const name of [`${kind}-0`, `${kind}-1`])
      if (scene.claimObject(name) !== undefined) await scene.clock.run(scene.deleteClaim(name));
  }
  const isEmpty = (): boolean =>
    kinds.every((kind) => [0, 1].every((n) => scene.claimObject(`${kind}-${n}`) === undefined));
  if (!(await scene.until(isEmpty))) faults.push('a claim does not end');
  const left = (): readonly string[] =>
    scene
      .eips()
      .map(({ eipId }) => eipId)
      .filter((eipId) => !lent.includes(eipId));
  // What an audit has to find counts as lost no sooner than it may be found.
  if (!(await scene.until(() => left().length === 0))) faults.push(`leaked: ${left().join()}`);
  scene.die();
  return [...faults, ...new Set(scene.violations)];
}

for (const seed of seedList(8)) {
  test(`runEips: has one EIP for each Pod and none too many through random lives, seed ${seed}`, async (t) => {
    await tellingSeed(t, async () => t.deepEqual(await live(seed), []));
  });
}
