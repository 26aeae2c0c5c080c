import { startAgent } from '../../agent/agent.ts';
import { readAgentConfig } from '../../agent/config/agent-config.ts';
import type { Served } from '../../agent/host-ports.ts';
import { trackAgentCalls } from '../../agent/supply/api-failures.ts';
import { CallFailures } from '../../kube/call-failures.ts';
import { updateGuarded } from '../../kube/guarded-update.ts';
import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { NODE_ENI_CONFIGS } from '../../kube/resource-types.ts';
import { type Logger, silentLogger } from '../../runtime/log.ts';
import { startInProcessApi } from '../../sim/kube-api/in-process.ts';
import { installKinds } from '../../sim/kube-api/install-kinds.ts';
import type { VirtualClock } from '../support/virtual-clock.ts';
import { Life } from './life.ts';
import { NodeHost } from './node-host.ts';

/** A life of the real agent: what it serves, and by which errors of its parts it was to end. */
type AgentLife = { readonly served: Served; readonly faults: readonly Error[]; kill(): void; close(): Promise<void> };

/** An ENI of the node: shared, or for one Pod as a whole. */
export type SceneEni = { readonly eniID: string; readonly mac: string; readonly mode?: 'direct-eni' };

const ONE_ENI: readonly SceneEni[] = [{ eniID: 'eni-a', mac: '02:00:00:00:01:01' }];

/**
 * Makes a node with a primary interface and ENIs (eth1, eth2, …; addresses 10.0.N.2 and, shared, 10.0.N.10 and 11), in a cluster
 * that has its object.
 */
export async function openNode(
  clock: VirtualClock,
  name: string,
  { log = silentLogger, enis = ONE_ENI }: { readonly log?: Logger; readonly enis?: readonly SceneEni[] } = {},
) {
  const api = startInProcessApi({ clock });
  const kube = api.client({ userAgent: 'people' });
  const host = new NodeHost(clock, 'boot-1');
  const { kernel } = host;
  const rtnetlink = kernel.openRtnetlink(kernel.host);
  rtnetlink.link.set({ ifindex: 1, up: true });
  const primary = kernel.plugIn(kernel.host, { ifname: 'eth0', address: '02:00:00:00:00:01' });
  rtnetlink.link.set({ ifindex: primary, up: true });
  rtnetlink.address.add({ ifindex: primary, address: '10.0.0.10', prefixlen: 24 });
  rtnetlink.route.add({ family: 2, gateway: '10.0.0.1', oif: primary });
  for (const [at, { mac }] of enis.entries()) kernel.plugIn(kernel.host, { ifname: `eth${at + 1}`, address: mac });
  await clock.run(installKinds(kube));
  await clock.run(createNec(kube, name, enis));
  const start = async (ready?: (isReady: boolean) => void): Promise<AgentLife> => {
    let served: Served | undefined;
    const faults: Error[] = [];
    const life = new Life(name, {
      clock,
      note: () => {},
      jitterMs: () => 0,
      onCall: () => () => {},
      onDeath: () => {},
    });
    const apiFailures = new CallFailures(life.clock);
    const ports = host.ports({
      ...{ clock: life.clock, nodeName: name },
      serving: (its) => {
        served = its;
      },
      ...(ready && { ready }),
    });
    const running = await clock.run(
      startAgent(configOf(name), {
        ...{ clock: life.clock, log, release: 'simulation', random: () => 0.5, apiFailures, host: ports },
        failed: (error) => {
          faults.push(error);
          life.kill();
        },
        randomBytes: (count) => new Uint8Array(count).fill(7),
        kube: trackAgentCalls(life.kube(api.client({ userAgent: name })), apiFailures),
      }),
    );
    if (served === undefined) throw new Error('the agent does not serve');
    return { served, faults, kill: () => life.kill(), close: () => clock.run(running.close()) };
  };
  /** The link by which a packet leaves; undefined where none leads there. */
  const linkTo = (dst: string): number | undefined => {
    try {
      return rtnetlink.route.get({ dst }).oif;
    } catch {
      return undefined;
    }
  };
  return { host, kube, rtnetlink, linkTo, start };
}

async function createNec(kube: KubeClient, name: string, enis: readonly SceneEni[]): Promise<void> {
  const bare = { apiVersion: 'networking.tke.cloud.tencent.com/v1', kind: 'NodeENIConfig', metadata: { name } };
  const direct = enis.filter(({ mode }) => mode !== undefined).length;
  await kube.create(NODE_ENI_CONFIGS, { ...bare, ...(direct > 0 && { spec: { maxDirectENI: direct } }) });
  const eniInfos = enis.map(({ eniID, mac, mode }, at) => ({
    ...{ eniID, mac, primaryIP: `10.0.${at + 1}.2`, gateway: `10.0.${at + 1}.1`, state: 'Attached' },
    ...{ subnetID: 'subnet-a', subnetCIDR: `10.0.${at + 1}.0/24` },
    ...(mode === undefined
      ? { addresses: [10, 11].map((last) => addressOf(`10.0.${at + 1}.${last}`)) }
      : { mode, assignmentID: `as-${eniID}` }),
  }));
  const supply = (object: KubeObject) => ({ ...object, status: { eniInfos, supplyEpoch: 1 } });
  await updateGuarded(kube, NODE_ENI_CONFIGS, { name }, supply);
}

const addressOf = (ip: string) => ({ ip, assignmentID: `as-${ip}`, state: 'Assigned' });

function configOf(name: string) {
  const argv = ['--supply-source=cluster', `--node-name=${name}`, '--metrics-address='];
  const outcome = readAgentConfig({ argv, env: {}, readFile: () => '' });
  if (outcome.kind !== 'run') throw new Error('settings of the test are wrong');
  return outcome.config;
}
