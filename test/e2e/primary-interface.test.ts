import test from 'ava';
import type { NetnsView } from '../../sim/support/netns.ts';
import { partOf } from '../support/suite-part.ts';
import { waitUntil } from '../support/wait-until.ts';
import { askWho } from './packets/ask.ts';
import { startWhoServers } from './packets/serve.ts';
import { runCli } from './support/run-cli.ts';
import { openTrial } from './support/trial.ts';

const PORT = 8080;
const NODE_PORT = 30080;

const modes = partOf(['compact', 'per-pod'] as const, (mode) => mode === 'compact');

for (const ruleMode of modes) {
  test.serial(`primary interface: the node's own one, whatever default routes others make, ${ruleMode}`, async (t) => {
    const trial = await openTrial({ ruleMode });
    try {
      const { node, vpc } = trial;
      const { netns } = node;
      const { primaryIp, gateway, mac } = vpc.node('n1').primary;
      const outside = vpc.outside.netns;
      const pod = await trial.addPod();
      const servers = await startWhoServers(PORT, [{ netns: pod.netns, name: 'pod' }]);
      const dnat = `PREROUTING -d ${primaryIp} -p tcp --dport ${NODE_PORT} -j DNAT --to-destination ${pod.ip}:${PORT}`;
      await netns.run(['iptables', '-t', 'nat', '-A', ...dnat.split(' ')]);
      const answers = async (when: string): Promise<void> => {
        t.is(await askWho(outside, 'tcp', primaryIp, NODE_PORT), `pod ${vpc.outside.ip}`, when);
      };
      await answers('as it was');

      // A NIC of a person, with a DHCP client of its own.
      await netns.run(['ip', 'link', 'add', 'data0', 'type', 'veth', 'peer', 'name', 'datagw', 'netns', outside.name]);
      await outside.ipBatch(['link set datagw up', 'address add 192.168.50.1/24 dev datagw']);
      await netns.ipBatch([
        'link set data0 up',
        'address add 192.168.50.2/24 dev data0',
        `route add ${vpc.outside.ip}/32 via ${gateway} dev eth0`,
        `route add default via ${gateway} dev eth0 metric 100`,
        'route add default via 192.168.50.1 dev data0 metric 50',
        `route del default via ${gateway} dev eth0 metric 0`,
      ]);
      const toData = async (): Promise<boolean> =>
        (await netns.run(['ip', 'route', 'show', 'table', 'all', 'proto', '84'])).includes(
          '192.168.50.0/24 dev data0 table 3997',
        );
      await waitUntil(toData, { what: 'the network of the other link in a table of ours' });
      const repaired = await runCli({ netns, ...trial.agent }, 'repair');
      t.is(repaired.code, 0, `the agent looks at the node again: ${repaired.stdout}${repaired.stderr}`);
      await answers('another link has the better default route');
      t.true((await markedLinks(netns)).includes('eth0'));

      await netns.ip('route', 'flush', 'exact', 'default');
      await trial.killAgent();
      await trial.startAgent();
      await answers('the agent starts without any default route');
      const late = await trial.addPod();
      t.true(await late.netns.ping(vpc.outside.ip), 'and serves');

      await trial.killAgent();
      await netns.ip('route', 'add', 'default', 'via', '192.168.50.1', 'dev', 'data0');
      await trial.startAgent();
      await answers('the agent starts where only another link has a default route');

      await netns.ipBatch(['link set eth0 down', 'link set eth0 name ens5', 'link set ens5 up']);
      await netns.ipBatch([`route add ${vpc.outside.ip}/32 via ${gateway} dev ens5`]);
      await waitUntil(async () => (await markedLinks(netns)).includes('ens5'), { what: 'the new name in nftables' });
      await answers('it has another name');

      await netns.ipBatch([
        'link add br0 type bridge',
        `link set br0 address ${mac}`,
        'link set ens5 master br0',
        `address del ${primaryIp}/24 dev ens5`,
        'link set br0 up',
        `address add ${primaryIp}/24 dev br0`,
        `route add ${vpc.outside.ip}/32 via ${gateway} dev br0`,
      ]);
      await waitUntil(async () => (await markedLinks(netns)).includes('br0'), { what: 'the bridge in nftables' });
      await answers('its address is on a bridge above it');
      await waitUntil(async () => (await netns.run(['cat', '/proc/sys/net/ipv4/conf/br0/rp_filter'])).trim() === '2', {
        what: 'rp_filter of the bridge',
      });
      await servers.stop();
    } finally {
      await trial.close();
    }
  });
}

/** Primary interfaces that our nftables table names. */
async function markedLinks(netns: NetnsView): Promise<readonly string[]> {
  const listing = await netns.run(['nft', 'list', 'table', 'inet', 'tke_eni']);
  return [...listing.matchAll(/iifname != "([^"]+)"/g)].map(([, name = '']) => name);
}
