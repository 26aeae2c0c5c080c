/**
 * Random lives of Services while two packaged processes take the lock in turns: now and then one is killed with SIGKILL, and calls of
 * both sides go wrong all the time. In the end each Service has one load balancer as it asks, and nothing is left.
 */
import { writeFileSync } from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import type { KubeClient } from '../../kube/kube-client.ts';
import { NODES, SERVICES } from '../../kube/resource-types.ts';
import { systemClock } from '../../runtime/clock.ts';
import { connectInProcess } from '../../sim/kube-api/in-process.ts';
import { renderKubeconfig } from '../../sim/kube-api/kubeconfig.ts';
import { type KubeApi, startKubeApi } from '../../sim/kube-api/start-kube-api.ts';
import { Child } from '../../sim/support/child.ts';
import { childEnv } from '../../sim/support/child-env.ts';
import { seedOf } from '../../sim/support/seed.ts';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import { CloudHost } from '../../sim/vpc/api/host.ts';
import { CloudServer } from '../../sim/vpc/api/http-server.ts';
import { buildExecutables } from '../../tools/build.ts';
import { executablePath } from '../support/executables.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { waitUntil } from '../support/wait-until.ts';
import { tellingSeed } from '../support/with-seed.ts';
import { CLOUD_FAULTS, FAULT_CHANCE, remaindersOf } from './services/lives-oracle.ts';
import type { Wanted } from './services/service-deeds.ts';

const SEEDS = 10;
/** Lives at once: most of a life is waiting. */
const LANES = 3;
const STEPS = 16;
const VPC = 'vpc-00000001';
const SUBNET = 'subnet-node0001';
const CLOUD = { vpcId: VPC, subnets: [{ subnetId: SUBNET, zone: 'ap-guangzhou-3', cidr: '10.0.0.0/16' }] } as const;
const FLAGS = [
  ...['--region=ap-guangzhou', '--protocol=http', '--metrics-address='],
  ...['--load-balancers=clb', '--clusterid=cls-service1', `--vpc-id=${VPC}`, '--cloud-timeout=5s'],
  ...['--leader-elect-lease-duration=5s', '--leader-elect-retry-period=200ms'],
];
const GROUPS = ['system:masters', 'system:authenticated'];
const REPLICAS = ['one', 'two'] as const;
const NAMES = ['a', 'b', 'c', 'd'] as const;
const RANGES = ['10.0.0.0/8', '192.0.2.0/24', ''] as const;
const NAMESPACE = 'default';
/** A pause between two steps at most, and until a process that was killed is started again. */
const [PAUSE_MS, DOWN_MS] = [1_500, 3_000];

/** An API server, a cloud with two machines, and the processes that work for them. */
class Story {
  readonly server: KubeApi;
  readonly admin: KubeClient;
  readonly host: CloudHost;
  readonly ips: readonly string[];
  readonly wanted = new Map<string, Wanted>();
  readonly #cloud: CloudServer;
  readonly #folder = createTempDir('ccm-lives');
  readonly #running = new Map<string, Child>();
  readonly #all: Child[] = [];
  #serial = 0;

  constructor(server: KubeApi, host: CloudHost, cloud: CloudServer) {
    this.server = server;
    this.host = host;
    this.#cloud = cloud;
    this.admin = connectInProcess(server.api, { clock: systemClock }).client({ userAgent: 'admin' });
    this.ips = ['n1', 'n2'].map((name) => {
      const { state } = host.model;
      state.addInstance({ instanceId: `ins-lives0${name}`, cores: 4, subnetId: SUBNET });
      return state.enisOf(`ins-lives0${name}`).flatMap((eni) => [...eni.ips.keys()])[0] ?? '';
    });
  }

  static async open(seed: number): Promise<Story> {
    const server = await startKubeApi({ authorization: 'rbac', bookmarkIntervalMs: 5_000 });
    const host = new CloudHost(CLOUD, systemClock, { seed, latencyMs: [5, 30], taskMs: [100, 600] });
    const cloud = new CloudServer(host, { region: 'ap-guangzhou' });
    await cloud.start();
    const story = new Story(server, host, cloud);
    for (const [at, name] of ['n1', 'n2'].entries()) {
      const spec = { providerID: `qcloud:///100003/ins-lives0${name}` };
      const status = {
        addresses: [{ type: 'InternalIP', address: story.ips[at] ?? '' }],
        conditions: [{ type: 'Ready', status: 'True', reason: 'Kubelet' }],
      };
      await story.admin.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name }, spec, status });
      await story.admin.patch(NODES, { name }, { kind: 'merge', body: { status }, subresource: 'status' });
    }
    return story;
  }

  /** Starts a process; its faults on the side of the API server are those of its user. */
  start(name: string): void {
    this.#serial += 1;
    const user = `${name}-${this.#serial}`;
    const { secretId, secretKey } = this.#cloud.credentials.add(`AKID${user}`, 'good-secret');
    const path = this.#folder.join(`kubeconfig-${user}`);
    const token = this.server.addToken({ username: name, groups: GROUPS });
    writeFileSync(path, renderKubeconfig({ url: this.server.url, token }));
    const env = {
      PATH: childEnv()['PATH'] ?? '',
      POD_NAME: name,
      TENCENTCLOUD_SECRET_ID: secretId,
      TENCENTCLOUD_SECRET_KEY: secretKey,
    };
    const own = [`--kubeconfig=${path}`, `--endpoint=${this.#cloud.endpoint}`];
    const child = new Child([executablePath('tke-cloud-controller-manager'), ...own, ...FLAGS], { env });
    this.#running.set(name, child);
    this.#all.push(child);
  }

  async kill(name: string): Promise<void> {
    const child = this.#running.get(name);
    child?.kill('SIGKILL');
    await child?.exited;
  }

  /** Makes calls of both sides go wrong; returns how to end it. */
  fault(): () => void {
    const { faults } = this.server;
    const ends = CLOUD_FAULTS.map((rule) => this.host.faults.add(rule));
    for (const user of REPLICAS) {
      ends.push(
        faults.add({ user, action: { kind: 'status', code: 500 }, chance: FAULT_CHANCE }),
        faults.add({ user, action: { kind: 'drop-before' }, chance: FAULT_CHANCE }),
        faults.add({
          ...{ user, action: { kind: 'drop-after' }, chance: FAULT_CHANCE },
          verbs: ['update', 'patch', 'create'],
        }),
      );
    }
    return () => {
      for (const end of ends) end();
    };
  }

  /** Does what an owner of a Service may do, if it fits the state of the Service. */
  async act(name: string, random: () => number): Promise<void> {
    const ref = { namespace: NAMESPACE, name };
    const now = this.wanted.get(name);
    if (now === undefined) {
      if (this.server.objects('services').some(({ metadata }) => metadata.name === name)) return;
      const annotations = { 'tke.cloud.tencent.com/allow-address-change': 'true' };
      await this.admin.create(SERVICES, {
        ...{ apiVersion: 'v1', kind: 'Service', metadata: { ...ref, annotations } },
        spec: { type: 'LoadBalancer', selector: { app: name }, ports: [{ port: 80 }] },
      });
      this.wanted.set(name, { port: 80, isInternal: false, range: '' });
      return;
    }
    const drawn = random();
    if (drawn < 0.3) {
      await this.admin.delete(SERVICES, ref);
      this.wanted.delete(name);
    } else if (drawn < 0.65) await this.setPort(name, now.port === 80 ? 81 : 80);
    else {
      now.range = RANGES[Math.floor(random() * RANGES.length)] ?? '';
      const body = { spec: { loadBalancerSourceRanges: now.range === '' ? null : [now.range] } };
      await this.admin.patch(SERVICES, ref, { kind: 'merge', body });
    }
  }

  async setPort(name: string, port: number): Promise<void> {
    const ref = { namespace: NAMESPACE, name };
    await this.admin.patch(SERVICES, ref, { kind: 'merge', body: { spec: { ports: [{ port }] } } });
    this.wanted.set(name, { range: '', isInternal: false, ...this.wanted.get(name), port });
  }

  remainders(): readonly string[] {
    const { model } = this.host;
    model.advance(systemClock.nowMs());
    const { clb, securityGroups } = model.state;
    const balancers = [...clb.balancers().values()];
    const services = this.server.objects('services').filter(({ metadata }) => metadata.namespace === NAMESPACE);
    const none = { bought: '', foreign: 'gone', ips: this.ips };
    return remaindersOf({ balancers, securityGroups, services }, this.wanted, none);
  }

  async untilClean(timeoutMs: number): Promise<void> {
    const explain = (): string =>
      [
        ...this.remainders(),
        ...this.#all.slice(-2).map(({ stdout, stderr }) => `${stdout}${stderr}`.slice(-3_000)),
      ].join('\n');
    await waitUntil(() => this.remainders().length === 0, {
      ...{ what: 'all is as it is asked for', timeoutMs, everyMs: 250, explain },
    });
  }

  async close(): Promise<void> {
    for (const child of this.#all) await child.stop('SIGKILL');
    await this.#cloud.close();
    await this.server.close();
    this.#folder.close();
  }
}

test.before('packages the executable', async (t) => {
  t.timeout(300_000);
  await buildExecutables(['tke-cloud-controller-manager']);
});

const lanes = Array.from({ length: LANES }, () => Promise.resolve());
for (let serial = 1; serial <= SEEDS; serial++)
  test(`two packaged processes, one killed now and then: nothing is left, life ${serial}`, async (t) => {
    t.timeout(600_000);
    const before = lanes[serial % LANES];
    const over = Promise.withResolvers<void>();
    lanes[serial % LANES] = over.promise;
    await before;
    try {
      await tellingSeed(t, () => live(t, seedOf(t.title)));
    } finally {
      over.resolve();
    }
  });

async function live(t: ExecutionContext, seed: number): Promise<void> {
  const random = seededRandom(seed);
  const story = await Story.open(seed);
  try {
    await churn(t, story, random);
  } finally {
    await story.close();
  }
}

async function churn(t: ExecutionContext, story: Story, random: () => number): Promise<void> {
  for (const name of REPLICAS) story.start(name);
  const calm = story.fault();
  let kills = 0;
  for (let step = 0; step < STEPS; step++) {
    await story.act(NAMES[Math.floor(random() * NAMES.length)] ?? 'a', random);
    await systemClock.sleep(random() * PAUSE_MS);
    if (random() > 0.3) continue;
    const name = random() < 0.5 ? 'one' : 'two';
    kills += 1;
    await story.kill(name);
    await systemClock.sleep(random() * DOWN_MS);
    story.start(name);
  }
  calm();
  // The processes that go on have waits of minutes after faults; those that are started now have none.
  for (const name of REPLICAS) {
    await story.kill(name);
    story.start(name);
  }
  await story.untilClean(120_000);
  for (const name of [...story.wanted.keys()]) {
    await story.admin.delete(SERVICES, { namespace: NAMESPACE, name });
    story.wanted.delete(name);
  }
  await story.untilClean(60_000);
  t.log(`${kills} killed`);
  t.deepEqual(story.remainders(), []);
}
