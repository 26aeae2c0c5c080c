import { createTencentCloud } from '../../../cloud/tencent/tencent-cloud.ts';
import { readIpamdConfig } from '../../../ipamd/config/ipamd-config.ts';
import type { IpamdConfig } from '../../../ipamd/config/options.ts';
import { makeGuests } from '../../../ipamd/guests/all.ts';
import { type RunningIpamd, startIpamd } from '../../../ipamd/ipamd.ts';
import { createIpamdMetrics } from '../../../ipamd/observability/metrics.ts';
import type { KubeClient, KubeObject } from '../../../kube/kube-client.ts';
import { CONFIG_MAPS, NODES } from '../../../kube/resource-types.ts';
import { type Logger, silentLogger } from '../../../runtime/log.ts';
import { ADMIN, serviceAccountUser, type User } from '../../../sim/kube-api/auth/tokens.ts';
import { type InProcessApi, startInProcessApi } from '../../../sim/kube-api/in-process.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import { CloudHost } from '../../../sim/vpc/api/host.ts';
import { createInProcessApi } from '../../../sim/vpc/api/in-process.ts';
import type { CloudSpec } from '../../../sim/vpc/api/model/state.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

/** A cloud with one subnet for Pods and one for nodes. */
export const CLOUD = {
  vpcId: 'vpc-00000001',
  subnets: [
    { subnetId: 'subnet-pods0001', zone: 'ap-guangzhou-3', cidr: '10.1.0.0/20' },
    { subnetId: 'subnet-node0001', zone: 'ap-guangzhou-3', cidr: '10.0.0.0/24' },
  ],
} as const;

/** Flags that every ipamd here has; later ones win. */
export function ipamdConfig(...flags: readonly string[]): IpamdConfig {
  const argv = ['--clusterid=cls-shell001', '--region=ap-guangzhou', '--metrics-address=', ...flags];
  const outcome = readIpamdConfig({
    argv: [...new Map(argv.map((flag) => [flag.split('=')[0], flag])).values()],
    env: {},
    readFile: () => '',
  });
  if (outcome.kind !== 'run') throw new Error(`got ${outcome.kind}`);
  return outcome.config;
}

/** Adds an instance of eight cores to the cloud. */
export function addInstance(host: CloudHost, instanceId: string): void {
  host.model.state.addInstance({ instanceId, cores: 8, subnetId: 'subnet-node0001' });
}

/** The Node of an instance. */
export function nodeOf(name: string, instanceId: string): KubeObject {
  return { apiVersion: 'v1', kind: 'Node', metadata: { name }, spec: { providerID: `qcloud:///100003/${instanceId}` } };
}

/** Writes what an administrator writes before ipamd starts. */
export async function configureSubnets(kube: KubeClient): Promise<void> {
  await kube.create(CONFIG_MAPS, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'tke-eni-ipamd', namespace: 'kube-system' },
    data: { TKE_ENI_IPAMD_SUBNET_ID: 'subnet-pods0001', TKE_ENI_IPAMD_VPC_ID: CLOUD.vpcId },
  });
}

/** A cluster in this process, on a virtual clock. */
export type ShellScene = {
  readonly clock: VirtualClock;
  readonly host: CloudHost;
  readonly server: InProcessApi;
  readonly kube: KubeClient;
  start(options?: {
    readonly name?: string;
    readonly flags?: readonly string[];
    readonly log?: Logger;
    readonly guests?: typeof makeGuests;
  }): Promise<RunningIpamd>;
  join(name: string): Promise<void>;
  nec(name: string): KubeObject | undefined;
  /** Goes on until it holds. @throws Error when it does not within ten minutes of the clock. */
  until(holds: () => boolean): Promise<void>;
};

/** Makes a cluster whose subnets are configured, with no Node and no ipamd yet. */
export async function shellScene(spec: CloudSpec = CLOUD): Promise<ShellScene> {
  const scene = openShell(spec);
  await scene.clock.run(configureSubnets(scene.kube));
  return scene;
}

/** Makes a cluster in which nothing is configured: a cloud and an API server. */
export function openShell(spec: CloudSpec): ShellScene {
  const clock = new VirtualClock();
  const host = new CloudHost(spec, clock, { seed: 5, latencyMs: [20, 60], taskMs: [500, 1_500] });
  const server = startInProcessApi({ clock, latencyMs: 4 });
  const kube = server.client();
  let serial = 0;
  return {
    clock,
    host,
    server,
    kube,
    start: async ({ name = 'ipamd', flags = [], log = silentLogger, guests = makeGuests } = {}) => {
      const random = seededRandom(++serial);
      const config = ipamdConfig(...flags);
      const metrics = createIpamdMetrics(clock, { release: 'test', minWarmIps: config.ipMinWarmTarget });
      const cloud = createTencentCloud({ api: createInProcessApi(host), clock, random, observer: metrics.cloud });
      let made = 0;
      const life = serial;
      const next = (): string => `${life.toString(16).padStart(4, '0')}${(++made).toString(16).padStart(12, '0')}`;
      const now = (): string => new Date(clock.nowMs()).toISOString();
      const ids = { next, now };
      const kube = server.client({ userAgent: name, user: IPAMD });
      const own = { kube, cloud, metrics, release: 'test', identity: name };
      return await startIpamd(config, { clock, log, random, ids, ...own }, guests);
    },
    join: async (name) => {
      const instanceId = `ins-shell${name}`;
      addInstance(host, instanceId);
      await clock.run(kube.create(NODES, nodeOf(name, instanceId)));
    },
    nec: (name) =>
      server
        .objects('nodeeniconfigs', 'networking.tke.cloud.tencent.com')
        // The store's objects are those of the API.
        .find(({ metadata }) => metadata['name'] === name) as KubeObject | undefined,
    until: async (holds) => {
      if (!(await clock.until(holds, LIMIT_MS))) throw new Error('it does not come to hold');
    },
  };
}

/** Admission policies know it by its name. It has every right, as if its role granted it. */
const IPAMD: User = {
  ...serviceAccountUser('kube-system', 'tke-eni-ipamd'),
  groups: ADMIN.groups,
};

const LIMIT_MS = 600_000;
