import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { BACKEND_READY_GATE, ENI_IP_RESOURCE, POD_ANNOTATION } from '../../crd/names.ts';
import type { NetnsView } from '../../sim/support/netns.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { waitUntil } from '../support/wait-until.ts';
import { type LoadReport, type LoadTarget, startLoad } from '../system/balanced/load.ts';
import { auditCluster } from './audit.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { tellOurPods } from './deploy.ts';
import { killProcess } from './disturbances.ts';
import { awaitPods, deploymentManifest, podsOf, spreadOverNodes } from './pods.ts';
import { startRealCluster } from './real-cluster.ts';
import { refusedRequests } from './refused.ts';
import { loadWebServer, WEB_SERVER_IMAGE } from './web-server-image.ts';
import { awaitBalanced, balancedService, DIRECT, INTERNAL, targetsOf } from './workloads/balanced.ts';
import { hasHelm, installChart, LOAD_BALANCER_VALUES } from './workloads/chart.ts';
import { CCM, CCM_LOCK, ccmPods, holderOf } from './workloads/cloud-nodes.ts';
import { ROLLOUT_MS, rollDeployment } from './workloads/roll.ts';

// Deployments behind load balancers are rolled under load: direct, by node ports with the policies Cluster and Local, all at
// once; connections of TCP that are kept and used once, the same of UDP. (UDP with Local is refused.) The gate of the Pods and
// their preStop sleep come from the webhook as the chart installs it.

/** Pods by Deployment: what their servers do at SIGTERM, and how long they serve after their deletion. */
const DEPLOYMENTS = {
  finish: { count: 3, atEnd: 'finish', preStop: '10s' },
  ignore: { count: 3, atEnd: 'ignore', preStop: '10s' },
  exit: { count: 3, atEnd: 'exit', preStop: '10s' },
  // Longer than another replica needs to lead and to set weights.
  long: { count: 3, atEnd: 'exit', preStop: '40s' },
  rest: { count: 8, atEnd: 'finish', preStop: '10s' },
} as const;
type Name = keyof typeof DEPLOYMENTS;
const ALL = { serves: 'web' } as const;
const PODS = 20;
const REQUESTS = 20_000;
const BOTH = ['TCP', 'UDP'].map((protocol) => ({ name: protocol.toLowerCase(), protocol, port: 80 }));
const LEASE = ['leader-elect-lease-duration=8s', 'leader-elect-retry-period=1s'];

if (!hasHelm) {
  test.skip('rolling updates behind load balancers (HELM names no helm executable)', () => {});
} else {
  let targets: readonly LoadTarget[] = [];

  const running = clusterOfFile(
    () => startRealCluster({ nodes: [{ name: 'node1' }, { name: 'node2' }, { name: 'client', joins: 'later' }] }),
    async (cluster) => {
      await loadWebServer(cluster.dir, cluster.nodes);
      const lease = LEASE.map((setting) => `cloudControllerManager.settings.${setting}`);
      await installChart(cluster, [...LOAD_BALANCER_VALUES, ...lease]);
      const service = (name: string, annotations: Readonly<Record<string, string>>, spec: object) =>
        cluster.apply(balancedService({ name, selector: ALL, annotations, spec }));
      // Before the Pods: the webhook gives the gate to Pods that a Service selects.
      await service('direct', DIRECT, { ports: BOTH });
      await service('any', INTERNAL, { ports: BOTH });
      await service('local', INTERNAL, { externalTrafficPolicy: 'Local' });
      const knows = async () => isGated(JSON.parse(await tried('probe').catch(() => '{}')));
      await waitUntil(knows, { what: 'a webhook that knows the Service', timeoutMs: 60_000, everyMs: 500 });
      for (const name of Object.keys(DEPLOYMENTS) as Name[]) await cluster.apply(manifestOf(name));
      await awaitPods(cluster, 'serves=web', PODS, { timeoutMs: 240_000 }).catch(async (error: Error) => {
        throw new Error(`${error.message}\n${await explained()}`);
      });
      const ways: Omit<LoadTarget, 'isKept' | 'count'>[] = [];
      for (const name of ['direct', 'any', 'local']) {
        const host = await awaitBalanced(cluster, name, client());
        ways.push({ host, port: 80, protocol: 'TCP' });
        if (name !== 'local') ways.push({ host, port: 80, protocol: 'UDP' });
      }
      targets = ways.flatMap((way) => [
        { ...way, isKept: true, count: 8 },
        { ...way, isKept: false, count: 5 },
      ]);
    },
  );

  const client = (): NetnsView => running().cloud.vpc.node('client').netns;

  /** A Pod of those behind the Services, as the API server would store it. */
  const tried = (name: string): Promise<string> =>
    running().kubectl('run', name, '--image=app:1', '--labels=serves=web', '--dry-run=server', '-o', 'json');

  const isGated = (pod: unknown): boolean =>
    at(pod, 'spec', 'readinessGates', 0, 'conditionType') === BACKEND_READY_GATE;

  const manifestOf = (name: Name): string => {
    const { count, atEnd, preStop } = DEPLOYMENTS[name];
    return deploymentManifest(name, count, {
      labels: ALL,
      annotations: { [POD_ANNOTATION.preStopSleep]: preStop },
      spec: { terminationGracePeriodSeconds: 3, ...spreadOverNodes(name) },
      container: {
        image: WEB_SERVER_IMAGE,
        env: [{ name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
        args: ['$(POD)', '80', atEnd],
        // Listeners of UDP have no health check: a Pod gets requests there as soon as its containers are ready.
        readinessProbe: { tcpSocket: { port: 80 }, periodSeconds: 1, timeoutSeconds: 5 },
        // Without a share of the processor a Pod on a busy machine may stand still for as long as a request waits.
        resources: { requests: { cpu: '50m', [ENI_IP_RESOURCE]: '1' }, limits: { [ENI_IP_RESOURCE]: '1' } },
      },
    });
  };

  /** Does something under load. */
  const underLoad = async (deed: () => Promise<unknown>): Promise<LoadReport> => {
    const load = startLoad(client(), targets, REQUESTS);
    try {
      await sleep(1_000);
      await deed();
      await sleep(2_000);
    } catch (error) {
      const { failed } = await load.stop();
      throw new Error(`${failed} requests failed; ${String(error)}\n${await explained()}`, { cause: error });
    }
    return load.stop();
  };

  const explained = async (): Promise<string> => `${targetsOf(running()).join('\n')}\n${await tellOurPods(running())}`;

  /** Rolls a Deployment under load; its former Pods are gone at the end. */
  const roll = (name: Name, meanwhile = async (): Promise<void> => undefined): Promise<LoadReport> =>
    underLoad(() => Promise.all([rollDeployment(running(), name, DEPLOYMENTS[name].count), meanwhile()]));

  const assertNoneFailed = async (t: ExecutionContext, report: LoadReport): Promise<void> => {
    t.log(`figure: ${report.requests} requests by ${report.connections} connections, ${report.failed} failed`);
    t.true(report.requests >= REQUESTS && Object.keys(report.answers).length >= PODS);
    if (report.failed > 0) t.log(await explained());
    t.deepEqual(report.failures, []);
    t.is(report.failed, 0);
  };

  test.serial('Pods have the gate and the preStop sleep of the webhook, and their gates are true', async (t) => {
    const list = at(await running().kubectlJson('get', 'pods', '-l', 'serves=web'), 'items');
    const pods = Array.isArray(list) ? list : [];
    t.is(pods.length, PODS);
    for (const pod of pods) {
      t.true(isGated(pod), JSON.stringify(at(pod, 'spec', 'readinessGates')));
      const conditions = at(pod, 'status', 'conditions');
      const gate = (Array.isArray(conditions) ? conditions : []).find((one) => at(one, 'type') === BACKEND_READY_GATE);
      t.is(at(gate, 'status'), 'True', JSON.stringify(gate));
      const preStop = DEPLOYMENTS[String(at(pod, 'metadata', 'labels', 'app')) as Name].preStop;
      const seconds = Number.parseInt(preStop, 10);
      t.is(at(pod, 'spec', 'containers', 0, 'lifecycle', 'preStop', 'sleep', 'seconds'), seconds);
      t.is(at(pod, 'spec', 'terminationGracePeriodSeconds'), seconds + 3);
    }
  });

  for (const name of ['finish', 'ignore', 'exit'] as const)
    test.serial(`rolling update of Pods that ${name} at SIGTERM: no request fails`, async (t) => {
      t.timeout(ROLLOUT_MS * 2);
      await assertNoneFailed(t, await roll(name));
    });

  test.serial('the leading controller is killed while Pods end: no request fails', async (t) => {
    t.timeout(ROLLOUT_MS * 2);
    const cluster = running();
    const leader = await holderOf(cluster, CCM_LOCK);
    const node = (await ccmPods(cluster)).find(({ name }) => name === leader)?.node ?? '';
    const ends = async () => (await podsOf(cluster, 'app=long')).some(({ isEnding }) => isEnding);
    const kill = async (): Promise<void> => {
      await waitUntil(ends, { what: 'a Pod that ends', timeoutMs: 120_000, everyMs: 50 });
      await killProcess(cluster.node(node), CCM.name);
    };
    await assertNoneFailed(t, await roll('long', kill));
    const restarts = await cluster.kubectlJson('-n', 'kube-system', 'get', 'pod', leader);
    t.true(Number(at(restarts, 'status', 'containerStatuses', 0, 'restartCount')) > 0);
  });

  test.serial('a planted fault, weights that are never set: requests fail', async (t) => {
    t.timeout(ROLLOUT_MS * 2);
    const fault = { kind: 'error', code: 'FailedOperation' } as const;
    const mend = running().cloud.host.faults.add({ fault, actions: ['BatchModifyTargetWeight'] });
    const cluster = running();
    const [old] = await awaitPods(cluster, 'app=exit', DEPLOYMENTS.exit.count);
    // No rollout: it stops at the next Pod, whose load balancer has not done what comes first.
    const report = await underLoad(() => cluster.kubectl('delete', 'pod', old?.name ?? '')).finally(mend);
    t.log(`figure: ${report.requests} requests, ${report.failed} failed, as ${report.failures[0]}`);
    t.true(report.failed > 0);
  });

  test.serial('cloud, objects and kernels agree, and nothing was refused', async (t) => {
    t.deepEqual(await auditCluster(running()), []);
    t.deepEqual(refusedRequests(running()), []);
  });
}
