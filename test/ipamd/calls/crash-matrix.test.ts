import test from 'ava';
import type { Fault } from '../../../sim/vpc/api/faults.ts';
import { partOf } from '../../support/suite-part.ts';
import { LEASE_MS } from '../support/lead-nodes.ts';
import { auditNode, type CrashPoint, type NodeScene, openNodeScene, supplyOf } from '../support/node-scene.ts';

/** Every call that changes something for a node. */
const ACTIONS = [
  'CreateNetworkInterface',
  'AttachNetworkInterface',
  'AssignPrivateIpAddresses',
  'UnassignPrivateIpAddresses',
  'DetachNetworkInterface',
  'DeleteNetworkInterface',
  'ModifyNetworkInterfaceAttribute',
] as const;

const FAULTS: Readonly<Record<string, Fault | undefined>> = {
  'nothing else': undefined,
  'a timeout before the effect': { kind: 'hang' },
  'a timeout after the effect': { kind: 'hang', after: true },
  'a reset before the effect': { kind: 'reset' },
  'a reset after the effect': { kind: 'reset', after: true },
  'an error before the effect': { kind: 'error', code: 'InternalError' },
  'an error after the effect': { kind: 'error', code: 'InternalError', after: true },
  'a refusal': { kind: 'error', code: 'UnauthorizedOperation' },
  'a task that fails': { kind: 'task', fate: 'fail' },
  'a task that vanishes': { kind: 'task', fate: 'vanish' },
  'a task of a minute': { kind: 'slow-task', ms: 60_000 },
};

const CRASHES: readonly (CrashPoint | undefined)[] = [
  undefined,
  'before-call',
  'after-call',
  'before-result',
  'after-result',
];

/** With them the leader that comes next knows least of what was done. */
const DEADLIEST: ReadonlySet<string> = new Set(['nothing else', 'a timeout after the effect', 'a task that vanishes']);

/** Grows, shrinks and changes until each kind of call was made, then comes to rest at seven addresses. */
async function live(scene: NodeScene): Promise<readonly string[]> {
  const faults: string[] = [];
  let life = scene.lead();
  const settle = async (name: string, holds: () => boolean): Promise<void> => {
    const isThere = await scene.until(() => {
      if (life.isOver) life = scene.lead();
      return holds();
    });
    if (!isThere) faults.push(`${name} was never reached: ${JSON.stringify(scene.nec()?.status)}`);
  };
  const isQuiet = (): boolean => (scene.nec()?.status?.intents ?? []).length === 0;
  scene.want(5);
  await settle('5', () => supplyOf(scene) === 5 && isQuiet());
  scene.want(12);
  await settle('12', () => supplyOf(scene) === 12 && isQuiet());
  scene.facts.parts = { securityGroups: ['sg-b', 'sg-a'] };
  const groups = (): string => (scene.nec()?.status?.eniInfos ?? []).map((eni) => eni.securityGroups?.join()).join(' ');
  await scene.edit((nec) => ({ ...nec, metadata: { ...nec.metadata, labels: { touched: 'yes' } } }));
  await settle('other groups', () => groups() === 'sg-b,sg-a sg-b,sg-a' && isQuiet());
  scene.want(7);
  await settle('7', () => supplyOf(scene) === 7 && scene.nec()?.status?.eniInfos?.length === 1 && isQuiet());
  // What was refused is taken out of use all the same, and asked for again.
  await settle('rest', () => auditNode(scene).length === 0);
  life.crash();
  return faults;
}

for (const action of ACTIONS) {
  test(`reconcileNode: loses and doubles nothing when ${action} goes wrong, and its leader dies beside it`, async (t) => {
    for (const [name, fault] of Object.entries(FAULTS)) {
      for (const point of partOf(
        CRASHES,
        (one) => one === undefined || (one === 'after-call' && DEADLIEST.has(name)),
      )) {
        const scene = await openNodeScene();
        if (fault !== undefined) scene.host.faults.add({ fault, actions: [action], times: 1 });
        if (point !== undefined) scene.crashAt(action, point);
        const faults = await live(scene);
        const about = `${action} with ${name}, leader dies ${point ?? 'never'} (${LEASE_MS} ms lease)`;
        t.deepEqual(faults, [], about);
        t.deepEqual(auditNode(scene), [], about);
        t.is(scene.nec()?.status?.routeENIIPs, 7, about);
        t.true(scene.isCrashDone(), `${about}: it did not come to that`);
        t.true(
          scene.host.seen.some((request) => request.action === action),
          about,
        );
      }
    }
  });
}
