import test from 'ava';
import { openWorld, WHO_PORT } from './packets/world.ts';

const CLUSTER_IP = { 4: '172.20.0.10', 6: 'fd00:20::10' };

for (const ruleMode of ['compact', 'per-pod'] as const) {
  test.serial(
    `packets: with egress by the node only what is beyond the VPC leaves by the primary, ${ruleMode}`,
    async (t) => {
      const world = await openWorld({ network: { ruleMode, egress: 'node' } });
      try {
        const [a1, a2, b1, c1] = [world.pod('a1'), world.pod('a2'), world.pod('b1'), world.pod('c1')];
        const n1 = world.node('n1');
        await world.serve(world.vpc.outside.netns, 'outside');
        // a2 has an EIP.
        n1.network = { ...n1.network, egressExempt: [a2.ips[4], a2.ips[6]] };
        await n1.reach();

        for (const family of [4, 6] as const) {
          const outside = world.outside(family);
          const node = n1.primary[family];
          await world.vpc.resetPacketLog();
          for (const protocol of ['tcp', 'udp'] as const) {
            t.is(
              await world.ask(a1.netns, protocol, outside, WHO_PORT),
              `outside ${node}`,
              'with the address of the node',
            );
            t.is(
              await world.ask(a2.netns, protocol, outside, WHO_PORT),
              `outside ${a2.ips[family]}`,
              'a Pod with an EIP is exempt',
            );
            t.is(
              await world.ask(a1.netns, protocol, c1.ips[family], WHO_PORT),
              `c1 ${a1.ips[family]}`,
              'within the VPC it keeps its address',
            );
            t.is(await world.ask(a1.netns, protocol, b1.ips[family], WHO_PORT), `b1 ${a1.ips[family]}`);
            // A CLB or an EIP brings the question by the ENI: the answer leaves there too, unchanged.
            t.is(await world.ask(world.vpc.outside.netns, protocol, a1.ips[family], WHO_PORT), `a1 ${outside}`);
          }
          t.deepEqual(await world.waysOf(node, outside), ['n1/eth0']);
          t.deepEqual(await world.waysOf(a2.ips[family], outside), ['eni-a']);
          t.deepEqual(await world.waysOf(a1.ips[family]), ['eni-a']);

          // A Service address is in no VPC CIDR, its backend is: the decision must see the backend.
          const command = family === 4 ? 'iptables' : 'ip6tables';
          const target = family === 4 ? `${c1.ips[4]}:${WHO_PORT}` : `[${c1.ips[6]}]:${WHO_PORT}`;
          const rule = [
            '-p',
            'tcp',
            '-d',
            CLUSTER_IP[family],
            '--dport',
            '80',
            '-j',
            'DNAT',
            '--to-destination',
            target,
          ];
          await n1.netns.run([command, '-t', 'nat', '-A', 'PREROUTING', ...rule]);
          t.is(await world.ask(a1.netns, 'tcp', CLUSTER_IP[family], 80), `c1 ${a1.ips[family]}`);
        }
        t.deepEqual(await world.vpc.droppedPackets(), []);
      } finally {
        await world.close();
      }
    },
  );
}
