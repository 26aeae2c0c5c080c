import test from 'ava';
import type { ModelEni } from '../../../sim/vpc/api/model/types.ts';
import { auditNode, INSTANCE, type NodeScene, openNodeScene, supplyOf } from '../support/node-scene.ts';

type Case = {
  readonly action: string;
  /** What somebody does in the cloud between the two answers. */
  readonly what: string;
  /** How many addresses the node wants before, and from then on. */
  readonly wants: readonly [number, number];
  /** Whether the call has had its effect. */
  readonly isDone: (eni: ModelEni) => boolean;
  readonly undo: (scene: NodeScene, eni: ModelEni) => void;
};

const isAtRest = ({ state, ips }: ModelEni) =>
  state === 'AVAILABLE' && [...ips.values()].every((ip) => ip.state === 'AVAILABLE');
const isAttached = (eni: ModelEni) => isAtRest(eni) && eni.attachment !== undefined;

const CASES: readonly Case[] = [
  {
    action: 'AssignPrivateIpAddresses',
    what: 'the addresses are taken off',
    wants: [2, 6],
    isDone: (eni) => isAtRest(eni) && eni.ips.size > 3,
    undo: ({ host: { model } }, eni) => {
      for (const ip of [...eni.ips.values()].slice(3)) model.state.removeIp(eni, ip);
    },
  },
  {
    action: 'CreateNetworkInterface',
    what: 'the ENI is deleted',
    wants: [0, 4],
    isDone: (eni) => isAtRest(eni),
    undo: ({ host: { model } }, eni) => model.state.removeEni(eni),
  },
  {
    action: 'CreateNetworkInterface',
    what: 'two of its addresses are taken off',
    wants: [0, 4],
    isDone: (eni) => isAtRest(eni),
    undo: ({ host: { model } }, eni) => {
      for (const ip of [...eni.ips.values()].slice(3)) model.state.removeIp(eni, ip);
    },
  },
  {
    action: 'AttachNetworkInterface',
    what: 'the ENI is detached',
    wants: [0, 4],
    isDone: (eni) => isAttached(eni),
    undo: ({ host: { model } }, eni) => model.state.unbind(eni),
  },
  {
    action: 'DetachNetworkInterface',
    what: 'the ENI is attached again',
    wants: [12, 2],
    isDone: (eni) => isAtRest(eni) && eni.attachment === undefined,
    undo: ({ host: { model } }, eni) => {
      model.state.bind(eni, INSTANCE, 2);
    },
  },
];

for (const { action, what, wants, isDone, undo } of CASES) {
  test(`${action}: an answer that is given again counts for nothing that no description shows: ${what}`, async (t) => {
    const scene = await openNodeScene();
    const [before, after] = wants;
    scene.want(before);
    scene.lead();
    t.true(await scene.until(() => supplyOf(scene) === before));
    await scene.pass(60_000);
    const { faults, model, seen } = scene.host;
    faults.add({ fault: { kind: 'hang', after: true }, actions: [action], times: 1 });
    const done = () => {
      model.advance(scene.clock.nowMs());
      return [...model.state.enis.values()].find((eni) => !eni.isPrimary && isDone(eni));
    };
    const sent = () => seen.filter((one) => one.action === action).length;
    const sentBefore = sent();
    scene.want(after);
    t.true(await scene.until(() => sent() > sentBefore && done() !== undefined, 1_200_000));
    const eni = done();
    if (eni === undefined) throw new Error('there is an ENI');
    undo(scene, eni);
    model.state.touch(eni);
    t.is(sent(), sentBefore + 1);
    t.true(await scene.until(() => sent() > sentBefore + 1, 60_000));
    const isWell = () => supplyOf(scene) === after && auditNode(scene).length === 0;
    t.true(await scene.until(isWell, 45_000), auditNode(scene).join('\n'));
    t.deepEqual(scene.violations, []);
  });
}
