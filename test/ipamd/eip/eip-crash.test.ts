import test from 'ava';
import type { Fault } from '../../../sim/vpc/api/faults.ts';
import { IS_LONG, partOf } from '../../support/suite-part.ts';
import { ATTRIBUTES, type Crash, EipScene, ID_LIST, POLICY } from './eip-scene.ts';

const KEPT = { [ATTRIBUTES]: '', [POLICY]: 'Never' } as const;
const MADE = { [ATTRIBUTES]: '{"InternetMaxBandwidthOut":20}' } as const;

/**
 * One Pod whose EIP is kept and moves to another node, one whose EIP goes with it, one that has an EIP lent; in the end
 * all are gone. Returns what never came to be.
 */
async function live(scene: EipScene, lent: string): Promise<readonly string[]> {
  const faults: string[] = [];
  const settle = async (name: string, holds: () => boolean): Promise<void> => {
    if (!(await scene.until(holds))) {
      const claims = ['kept-0', 'made-0', 'lent-0'].map((one) => scene.claimObject(one)?.['status'] ?? null);
      faults.push(`${name} never: ${JSON.stringify(claims)}`);
    }
  };
  scene.lead();
  await scene.addPod('kept-0', 'n1', scene.ip('n1', 0), KEPT);
  await scene.addPod('made-0', 'n1', scene.ip('n1', 1), MADE);
  await scene.addPod('lent-0', 'n1', scene.ip('n1', 2), { [ID_LIST]: lent });
  const all = ['kept-0', 'made-0', 'lent-0'];
  await settle('all are served', () => all.every((name) => scene.isServed(name)));
  const { eipID } = scene.claim('kept-0')?.status ?? {};
  await scene.deletePod('kept-0');
  await scene.addPod('kept-0', 'n2', scene.ip('n2', 0), KEPT);
  await settle('the moved one is served', () => scene.isServed('kept-0'));
  if (scene.claim('kept-0')?.status?.eipID !== eipID) faults.push('the EIP that was kept is another');
  for (const name of all) await scene.deletePod(name);
  await settle('one is kept', () => scene.claim('kept-0')?.status?.phase === 'Retained');
  await settle('two are gone', () => ['made-0', 'lent-0'].every((name) => scene.claimObject(name) === undefined));
  const { metadata } = scene.claimObject('kept-0') ?? {};
  await scene.clock.run(scene.deleteClaim(metadata?.name ?? ''));
  await settle('none is kept', () => scene.claimObject('kept-0') === undefined);
  scene.die();
  return faults;
}

async function judge(crash: Crash | undefined, fault?: { readonly action: string; readonly fault: Fault }) {
  const scene = await EipScene.open();
  const lent = await scene.lend();
  scene.crash = crash;
  if (fault !== undefined) scene.host.faults.add({ fault: fault.fault, actions: [fault.action], times: 1 });
  const faults = await live(scene, lent);
  const left = scene
    .eips()
    .filter((eip) => eip.eipId !== lent)
    .map((eip) => eip.eipId);
  const isFree = scene.eips().find((eip) => eip.eipId === lent)?.status === 'UNBIND';
  return {
    isOver: scene.crash === undefined,
    faults: [
      ...faults,
      ...new Set(scene.violations),
      ...(left.length === 0 ? [] : [`leaked: ${left.join()}`]),
      ...(isFree ? [] : [`${lent} is not free`]),
    ],
  };
}

for (const side of ['cloud', 'kube'] as const) {
  for (const moment of IS_LONG ? (['before', 'after'] as const) : (['after'] as const)) {
    test(`runEips: makes no second EIP and loses none when ipamd dies ${moment} each call of ${side}`, async (t) => {
      let at = 0;
      for (;;) {
        at += IS_LONG ? 1 : 3;
        const { faults, isOver } = await judge({ of: side, at, moment });
        t.deepEqual(faults, [], `dead ${moment} call ${at} of ${side}`);
        if (!isOver) break;
      }
      t.true(at > 10, `only ${at} calls`);
    });
  }
}

const FAULTS: Readonly<Record<string, Fault>> = {
  'a timeout before the effect': { kind: 'hang' },
  'a timeout after the effect': { kind: 'hang', after: true },
  'a reset before the effect': { kind: 'reset' },
  'a reset after the effect': { kind: 'reset', after: true },
  'an error after the effect': { kind: 'error', code: 'InternalError', after: true },
  'a refusal': { kind: 'error', code: 'UnauthorizedOperation' },
  'an EIP between two states': { kind: 'error', code: 'InvalidAddressIdStatus.NotPermit' },
  'a task that fails': { kind: 'task', fate: 'fail' },
  'a task that vanishes': { kind: 'task', fate: 'vanish' },
  'a task of a minute': { kind: 'slow-task', ms: 60_000 },
};

for (const action of ['AllocateAddresses', 'AssociateAddress', 'DisassociateAddress', 'ReleaseAddresses']) {
  test(`runEips: makes no second EIP and loses none when ${action} goes wrong`, async (t) => {
    for (const [name, fault] of Object.entries(FAULTS)) {
      for (const crash of partOf(
        [undefined, { of: 'kube', at: 9, moment: 'after' } as const],
        (one) => one === undefined,
      )) {
        const { faults } = await judge(crash, { action, fault });
        t.deepEqual(faults, [], `${action}: ${name}${crash === undefined ? '' : ', and a death'}`);
      }
    }
  });
}
