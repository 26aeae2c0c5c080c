import { copyFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import type { KubeClient } from '../../kube/kube-client.ts';
import { NODE_ENI_CONFIGS, NODES, PODS } from '../../kube/resource-types.ts';
import { systemClock } from '../../runtime/clock.ts';
import { silentLogger } from '../../runtime/log.ts';
import { type RunningScheduler, startScheduler } from '../../scheduler/scheduler.ts';
import { installKinds } from '../../sim/kube-api/install-kinds.ts';
import { type KeyPair, makeAuthority, makeKeyPair, signCertificate } from '../../sim/kube-api/pki.ts';
import { startKubeApi } from '../../sim/kube-api/start-kube-api.ts';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import { openTestClient } from '../kube/kube-scene.ts';
import { IS_LONG } from '../support/suite-part.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { waitUntil } from '../support/wait-until.ts';
import { necOf, podOf, schedulerConfig } from './scheduler-scene.ts';

/** So long that a process which has to wait for a core keeps its lock; a replica that ends gives it back at once. */
const LEASE = ['--leader-elect-lease=10s', '--leader-elect-renew=2s', '--leader-elect-retry=100ms'];
/** How long the Service still leads to a replica that ends. */
const PROXY_LAG_MS = 500;

type Answer = { readonly status: number; readonly body: Record<string, unknown> };

/** Replicas with certificates, their Pods, and a Service that leads to all that are ready. */
class Scene {
  readonly client: KubeClient;
  readonly serving: RunningScheduler[] = [];
  readonly #t: ExecutionContext;
  readonly #flags: readonly string[];
  readonly #agent: Agent;
  #count = 0;
  #turn = 0;

  private constructor(t: ExecutionContext, client: KubeClient, flags: readonly string[], agent: Agent) {
    this.#t = t;
    this.client = client;
    this.#flags = flags;
    this.#agent = agent;
  }

  static async open(t: ExecutionContext): Promise<Scene> {
    const api = await startKubeApi();
    const { client, close } = openTestClient({ url: api.url, token: 'any' });
    await installKinds(client);
    const dir = createTempDir('change-of-leader');
    const own = await makeKeyPair(dir.path, 'extender');
    const authority = await makeAuthority(dir.path, 'clients');
    const caller = await signCertificate(authority, 'system:kube-scheduler', 'clientAuth');
    copyFileSync(authority.certPath, dir.join('ca.crt'));
    const flags = [
      ...[...LEASE, `--tls-cert-file=${own.certPath}`],
      ...[`--tls-private-key-file=${own.keyPath}`, `--client-ca-file=${dir.join('ca.crt')}`],
      '--client-allowed-names=system:kube-scheduler',
    ];
    const agent = agentOf(own, caller);
    t.teardown(async () => {
      agent.destroy();
      close();
      await api.close();
      dir.close();
    });
    return new Scene(t, client, flags, agent);
  }

  /** Starts a replica, and makes its Pod with its address. */
  async start(): Promise<RunningScheduler> {
    const identity = `replica-${++this.#count}`;
    const runtime = { clock: systemClock, log: silentLogger, random: seededRandom(this.#count), kube: this.client };
    const replica = await startScheduler(schedulerConfig(...this.#flags), { ...runtime, release: 'test', identity });
    this.#t.teardown(() => replica.close());
    await this.client.create(PODS, replicaPod(identity, replica.address));
    const body = { status: { podIP: '127.0.0.1' } };
    const ref = { namespace: 'kube-system', name: identity };
    await this.client.patch(PODS, ref, { kind: 'merge', subresource: 'status', body });
    await waitUntil(() => replica.readiness() === undefined, { what: 'it is ready, whether it leads or not' });
    this.serving.push(replica);
    return replica;
  }

  async leader(): Promise<RunningScheduler> {
    return await waitUntil(() => this.serving.find(({ isLeading }) => isLeading), {
      what: 'a leader',
      timeoutMs: 60_000,
    });
  }

  /** Ends the leader as a rollout does, beside a new replica. */
  async changeLeader(): Promise<void> {
    const leader = await this.leader();
    const isEnding = leader.close();
    await sleep(PROXY_LAG_MS);
    this.serving.splice(this.serving.indexOf(leader), 1);
    await isEnding;
    await this.start();
    this.#t.not(await this.leader(), leader);
  }

  /** Asks as kube-scheduler does: by the Service, which leads to each ready replica in turn. */
  async ask(verb: string, body: unknown): Promise<Answer> {
    const replica = this.serving[this.#turn++ % this.serving.length];
    if (replica === undefined) throw new Error('no replica is ready');
    return await this.askReplica(replica, verb, body);
  }

  async askReplica({ address }: RunningScheduler, verb: string, body: unknown): Promise<Answer> {
    const text = JSON.stringify(body);
    return await new Promise((resolve, reject) => {
      const [host = '', port = ''] = address.split(':');
      const options = { host, port: Number(port), path: `/${verb}`, method: 'POST', agent: this.#agent };
      const sent = request(options, (response) => {
        let got = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          got += chunk;
        });
        // The answers of extender/v1; each test reads the fields of its verb.
        response.once('end', () =>
          resolve({ status: response.statusCode ?? 0, body: JSON.parse(got) as Record<string, unknown> }),
        );
      });
      sent.once('error', reject);
      sent.end(text);
    });
  }
}

function agentOf(own: KeyPair, caller: KeyPair): Agent {
  return new Agent({ keepAlive: true, maxSockets: 64, ca: own.cert, cert: caller.cert, key: caller.key });
}

function replicaPod(name: string, address: string) {
  const containerPort = Number(address.split(':')[1]);
  const container = { name: 'scheduler', image: 'none', ports: [{ name: 'https', containerPort }] };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'kube-system' },
    spec: { hostNetwork: true, containers: [container] },
  };
}

const PODS_IN_ALL = IS_LONG ? 1_000 : 200;
const PLACES = 0.9 * PODS_IN_ALL;
const NODE_NAMES = Array.from({ length: 5 }, (_, index) => `n${index}`);
const WORKERS = 16;
const MAX_TRIES = 50;

test('startScheduler: binds through three changes of leader without a refusal, and gives no place twice', async (t) => {
  t.timeout(120_000);
  const scene = await Scene.open(t);
  for (const name of NODE_NAMES) {
    await scene.client.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name } });
    const allocatable = PLACES / NODE_NAMES.length;
    await scene.client.create(NODE_ENI_CONFIGS, necOf({ name, allocatable, maxRouteENI: 10, maxIPPerENI: 30 }));
  }
  await scene.start();
  await scene.start();
  await scene.leader();
  const failures: string[] = [];
  const bound = new Map<string, string>();
  const refused: string[] = [];
  let done = 0;
  const place = async (index: number): Promise<void> => {
    const pod = await scene.client.create(PODS, podOf({ name: `p${index}` }));
    for (let attempt = 0; attempt < MAX_TRIES; attempt += 1) {
      const found = await scene.ask('filter', { Pod: pod, NodeNames: NODE_NAMES });
      if (found.status !== 200) failures.push(`filter ${found.status} ${JSON.stringify(found.body)}`);
      const fitting = (found.body['NodeNames'] ?? []) as readonly string[];
      const Node = fitting[index % Math.max(1, fitting.length)];
      if (Node === undefined) break;
      const args = { PodName: `p${index}`, PodNamespace: 'default', PodUID: pod.metadata.uid, Node };
      const answer = await scene.ask('bind', args);
      if (answer.status !== 200) failures.push(`bind ${answer.status} ${JSON.stringify(answer.body)}`);
      if (answer.status === 200 && answer.body['Error'] === '') {
        bound.set(`p${index}`, Node);
        return;
      }
      // kube-scheduler tries it again.
      refused.push(String(answer.body['Error']));
      await sleep(50);
    }
  };
  let next = 0;
  let allowed = 0;
  const work = async (): Promise<void> => {
    for (let index = next++; index < PODS_IN_ALL; index = next++) {
      while (index >= allowed) await sleep(20);
      await place(index).catch((error: unknown) => failures.push(String(error)));
      done += 1;
      await sleep(100_000 / PODS_IN_ALL);
    }
  };
  const workers = Array.from({ length: WORKERS }, work);
  for (const share of [0.1, 0.4, 0.7]) {
    // A change that takes long must not find all Pods bound before the next one.
    allowed = (share + 0.28) * PODS_IN_ALL;
    await waitUntil(() => done >= share * PODS_IN_ALL, { what: `${share} of the Pods`, timeoutMs: 60_000 });
    const before = done;
    await scene.changeLeader();
    t.true(done > before, 'Pods are bound while the leader changes');
  }
  allowed = PODS_IN_ALL;
  await Promise.all(workers);
  t.deepEqual(failures, []);
  t.is(bound.size, PLACES, refused.slice(0, 5).join('\n'));
  const page = await scene.client.listPage(PODS, {});
  const counts = new Map<string, number>();
  for (const { metadata, spec } of page.items as unknown as readonly {
    metadata: { name: string };
    spec: { nodeName?: string };
  }[]) {
    if (spec.nodeName === undefined) continue;
    t.is(bound.get(metadata.name), spec.nodeName);
    counts.set(spec.nodeName, (counts.get(spec.nodeName) ?? 0) + 1);
  }
  t.deepEqual(
    [...counts.values()],
    NODE_NAMES.map(() => PLACES / NODE_NAMES.length),
  );
});
