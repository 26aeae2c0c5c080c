import { checkExclusivePod } from '../../dataplane/check-exclusive-pod.ts';
import { checkPod } from '../../dataplane/check-pod.ts';
import { hostVethFallbackName, nicAlias, sideName } from '../../dataplane/host-veth-name.ts';
import { locateBridge } from '../../dataplane/locate-bridge.ts';
import type { BridgePodNetwork, EniPodNetwork, GrWiring, NodeNetwork } from '../../dataplane/network.ts';
import { BRIDGE_NAME, DIRECT_LINK_GROUP } from '../../dataplane/numbers.ts';
import { planNode } from '../../dataplane/plan-node.ts';
import { blockOf, podCidrOf } from '../../dataplane/pod-cidr.ts';
import { unwirePod } from '../../dataplane/unwire-pod.ts';
import { unwireExclusivePod, updateExclusiveRoutes, wireExclusivePod } from '../../dataplane/wire-exclusive-pod.ts';
import type { ContractCase } from './contract-case.ts';
import type { ContractNetns } from './machine.ts';
import { type ContractNode, makeNode, podOf } from './node.ts';

const BLOCK = podCidrOf('172.31.0.64/26');

/** The node's second ENI, as a whole. */
function directPodOf({ enis: [, eni] }: ContractNode): EniPodNetwork {
  const pod = podOf(eni.addresses.map(({ ip }) => ip));
  const addresses = eni.addresses.map(({ ip, gateway }) => ({ ip, gateway, prefixLength: ip.includes(':') ? 64 : 24 }));
  return {
    ...{ ...pod, kind: 'direct-eni', eniTable: DIRECT_LINK_GROUP },
    podVeth: { ...pod.podVeth, name: sideName('eth0') },
    nic: { mac: eni.mac, hostName: eni.ifname, mtu: 1500, addresses },
  };
}

const linksOf = ({ rtnetlink }: ContractNetns): readonly unknown[] =>
  rtnetlink.link.list().map(({ ifname, mtu, ifalias = '', group }) => `${ifname} ${mtu} ${group} ${ifalias}`.trim());

/** GlobalRoute Pods, and Pods with a whole ENI, on a kernel. */
export const OTHER_POD_CASES: readonly ContractCase[] = [
  ...(['compact', 'per-pod'] as const).map(
    (ruleMode): ContractCase => ({
      what: `a Pod with a whole ENI has its interface, is found as planned, and gives it back, in ${ruleMode} mode`,
      async run(machine) {
        const node = makeNode(machine);
        const { host, createNetns, finish } = machine;
        const { kernel } = node;
        const network: NodeNetwork = { ...node.network, ruleMode, hasDirect: true, serviceCidrs: ['10.96.0.0/12'] };
        const [shared] = node.enis;
        await node.reach(planNode(network, [shared], []));
        const clean = [node.traces(), linksOf(host)];
        const sandbox = createNetns();
        const plain = directPodOf(node);
        const fallbackName = hostVethFallbackName(plain.key);
        const wired = wireExclusivePod(kernel, host, sandbox, { node: network, pod: plain, fallbackName });
        const pod = { ...plain, hostVeth: { ...plain.hostVeth, name: wired.hostName, ifindex: wired.hostIfindex } };
        const desired = planNode(network, [shared], [pod]);
        const changes = await node.reach(desired);
        const check = { node: network, pod, ...(desired.nft && { nft: desired.nft }) };
        const found = await finish(checkExclusivePod(kernel, sandbox, check));
        const nic = sandbox.rtnetlink.link.get({ ifname: 'eth0' });
        const outOf = (dst: string) => {
          const { oif = 0, prefsrc } = sandbox.rtnetlink.route.get({ dst });
          return `${sandbox.rtnetlink.link.get({ ifindex: oif })?.ifname} ${prefsrc}`;
        };
        const ways = ['10.0.0.2', '10.96.0.1', '169.254.0.23', '10.0.6.9', '8.8.8.8'].map(outOf);
        const wider = { ...network, serviceCidrs: ['10.96.0.0/12', '10.200.0.0/16'] };
        const updated = await finish(updateExclusiveRoutes(kernel, sandbox, wider, pod));
        const again = await finish(updateExclusiveRoutes(kernel, sandbox, wider, pod));
        const ends = { hostNetns: host, podNetns: sandbox };
        const unwired = unwireExclusivePod(kernel, network, pod, ends);
        await finish(unwired.finished);
        const second = unwireExclusivePod(kernel, network, pod, ends);
        await finish(second.finished);
        return {
          ...{ changes, found, ways, updated: updated.length, again },
          nic: [nic?.address === pod.nic?.mac, nic?.ifalias === nicAlias(pod.key, 'eth6'), nic?.mtu],
          back: [unwired.nic, second.nic, linksOf(sandbox)],
          isClean: JSON.stringify([node.traces(), linksOf(host)]) === JSON.stringify(clean),
        };
      },
      sees: {
        ...{ changes: [], found: [], updated: 1, again: [] },
        ways: ['veth0 10.0.6.5', 'veth0 10.0.6.5', 'veth0 10.0.6.5', 'eth0 10.0.6.5', 'eth0 10.0.6.5'],
        ...{ nic: [true, true, 1400], back: ['back', 'back', ['lo 65536 0']], isClean: true },
      },
    }),
  ),
  ...(['bridge', 'routed'] as const satisfies readonly GrWiring[]).map(
    (wiring): ContractCase => ({
      what: `two GlobalRoute Pods are wired (${wiring}), are found as planned, and leave nothing behind`,
      async run(machine) {
        const node = makeNode(machine);
        const { host, createNetns, finish } = machine;
        const networkOf = (): NodeNetwork => ({
          ...{ ...node.network, podCidrs: [BLOCK] },
          bridge: { ...locateBridge(host.rtnetlink.link.list(), BRIDGE_NAME), mtu: 1500, wiring },
        });
        await node.reach(planNode(networkOf(), node.enis, []));
        await node.reach(planNode(networkOf(), node.enis, []));
        const clean = [node.traces(), linksOf(host)];
        const wired = ['172.31.0.70', '172.31.0.71'].map((ip, at) => {
          const { eniTable: _none, ...plain } = podOf([ip], at + 1);
          const pod: BridgePodNetwork = { ...plain, kind: 'bridge', wiring, block: blockOf(BLOCK), mtu: 1500 };
          const sandbox = createNetns();
          return { sandbox, pod: node.wire(sandbox, pod, networkOf()) };
        });
        const pods = wired.map(({ pod }) => pod);
        // The first repair gives a bridge that has no MAC of its own that of its first port.
        await node.reach(planNode(networkOf(), node.enis, pods));
        const changes = await node.reach(planNode(networkOf(), node.enis, pods));
        const found: unknown[] = [];
        for (const { sandbox, pod } of wired)
          found.push(...(await finish(checkPod(node.kernel, sandbox, { node: networkOf(), pod }))));
        for (const { pod } of wired) await finish(unwirePod(node.kernel, networkOf(), pod).finished);
        return [changes, found, JSON.stringify([node.traces(), linksOf(host)]) === JSON.stringify(clean)];
      },
      sees: [[], [], true],
    }),
  ),
];
