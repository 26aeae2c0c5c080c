import test from 'ava';
import { hostVethFallbackName } from '../../../dataplane/host-veth-name.ts';
import { letGo } from '../../../dataplane/let-go.ts';
import type { NodeNetwork } from '../../../dataplane/network.ts';
import { planNode } from '../../../dataplane/plan-node.ts';
import { unwirePod } from '../../../dataplane/unwire-pod.ts';
import { wirePod } from '../../../dataplane/wire-pod.ts';
import { podOf, type TestNode, withTestNode } from './test-node.ts';

const IPS = ['10.0.5.10', '10.0.6.11', 'fd00:10:0:5::10', 'fd00:10:0:6::11'];

const isRefused = ({ run }: TestNode, ip: string): boolean =>
  run('sh', '-c', `ip route get ${ip} 2>&1 || true`).includes('No route to host');

const refusedBy = (node: TestNode): readonly string[] => IPS.filter((ip) => isRefused(node, ip));

for (const ruleMode of ['compact', 'per-pod'] as const) {
  test(`planNode: the kernel refuses an address of the node from the end of its Pod to the next one, ${ruleMode}`, async (t) => {
    await withTestNode(async (node) => {
      const network: NodeNetwork = { ...node.network, ruleMode, assignedIps: IPS };
      const [eni] = node.enis;
      if (eni === undefined) return t.fail();
      await node.reach(planNode(network, node.enis, []));
      t.deepEqual(refusedBy(node), IPS);
      t.deepEqual(await node.reach(planNode(network, node.enis, [])), [], 'what was written is read back as planned');
      for (let turn = 0; turn < 2; turn++) {
        const pod = podOf(eni, ['10.0.5.10', 'fd00:10:0:5::10']);
        const { netns } = node.createPodNetns();
        const wired = wirePod(node.kernel, netns, { node: network, pod, fallbackName: hostVethFallbackName(pod.key) });
        t.deepEqual(refusedBy(node), ['10.0.6.11', 'fd00:10:0:6::11'], 'its Pod has it');
        const hostVeth = { ...pod.hostVeth, name: wired.hostName, ifindex: wired.hostIfindex };
        const { finished } = unwirePod(node.kernel, network, { ...pod, hostVeth });
        t.deepEqual(refusedBy(node), IPS, 'its Pod has ended');
        await finished;
      }
      t.deepEqual(await node.reach(planNode(network, node.enis, [])), [], 'nothing of the Pods is left');
    });
  });
}

test('letGo: ends the refusal of these addresses alone, and may be repeated', async (t) => {
  await withTestNode(async (node) => {
    await node.reach(planNode({ ...node.network, assignedIps: IPS }, node.enis, []));
    for (let turn = 0; turn < 2; turn++) {
      letGo(node.kernel.rtnetlink, ['10.0.5.10', 'FD00:10:0:5::10']);
      t.deepEqual(refusedBy(node), ['10.0.6.11', 'fd00:10:0:6::11']);
    }
  });
});
