/** Another client changes marks of a Node back: it is answered rarely, with an event. */
import test from 'ava';
import { ENI_IP_CONDITION, ENI_IP_TAINT } from '../../../crd/names.ts';
import { NODES } from '../../../kube/resource-types.ts';
import { NodesScene } from './nodes-scene.ts';

const SERVING = { spec: { readyResources: ['tke.cloud.tencent.com/eni-ip'] } };
/** How long they fight, and how fast the other client is. */
const FIGHT_MS = 180_000;
const EACH_MS = 500;
/** Three answers at once, then after 8, 16, 32, 60 and 60 seconds. */
const MOST = 10;

/** Lets another client undo each write; returns how many there were. */
async function fight(scene: NodesScene, isOurs: () => boolean, undo: () => Promise<unknown>): Promise<number> {
  let answers = 0;
  for (let at = 0; at < FIGHT_MS; at += EACH_MS) {
    await scene.clock.advance(EACH_MS);
    if (!isOurs()) continue;
    await scene.clock.run(undo());
    answers += 1;
  }
  return answers;
}

const told = (scene: NodesScene): readonly string[] => scene.events.filter((text) => text.startsWith('FieldContested'));

test('the taint of a node that serves', async (t) => {
  const scene = await new NodesScene().start();
  await scene.join();
  await scene.patchNec('node-1', SERVING);
  const hasTaint = () => scene.nodes.get('node-1')?.taints.some(({ key }) => key === ENI_IP_TAINT.key) === true;
  const put = () =>
    scene.kube.patch(NODES, { name: 'node-1' }, { kind: 'merge', body: { spec: { taints: [ENI_IP_TAINT] } } });
  const answers = await fight(scene, () => !hasTaint(), put);
  t.true(answers >= 3 && answers <= MOST, `${answers} answers`);
  t.is(told(scene).length, 1);
  t.regex(
    told(scene).join(),
    /keeps changing the taint tke\.cloud\.tencent\.com\/eni-ip-unavailable:NoSchedule back.*managedFields/,
  );
  await scene.clock.advance(61_000);
  t.false(hasTaint(), 'it is taken off again once the other client ends');
  await scene.stop();
});

test('the condition of a node, and nothing else of it waits', async (t) => {
  const scene = await new NodesScene({ enableNodeCondition: true, enableNodeTaint: true }).start();
  await scene.join();
  const isOurs = () => scene.nodes.get('node-1')?.eniIpCondition?.reason === 'NotServing';
  const condition = { type: ENI_IP_CONDITION, status: 'False', reason: 'Other' };
  const patch = { kind: 'strategic', body: { status: { conditions: [condition] } }, subresource: 'status' } as const;
  const answers = await fight(scene, isOurs, () => scene.kube.patch(NODES, { name: 'node-1' }, patch));
  t.true(answers >= 3 && answers <= MOST, `${answers} answers`);
  t.is(told(scene).length, 1);
  await scene.patchNec('node-1', SERVING);
  t.deepEqual(scene.nodes.get('node-1')?.taints, [], 'the taint goes at once');
  t.is(scene.nodes.get('node-1')?.eniIpCondition?.reason, 'Serving', 'and the condition says another thing');
  await scene.stop();
});
