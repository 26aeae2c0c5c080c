import test, { type ExecutionContext } from 'ava';
import { SimulatedAgent } from '../../../bench/ipamd/simulated-agent.ts';
import { createTencentCloud } from '../../../cloud/tencent/tencent-cloud.ts';
import { startIpamd } from '../../../ipamd/ipamd.ts';
import { openInformer } from '../../../kube/informer.ts';
import type { KubeClient, KubeObject } from '../../../kube/kube-client.ts';
import { isKubeError } from '../../../kube/kube-error.ts';
import { NODE_ENI_CONFIGS, NODES, PODS, VPC_IP_CLAIMS, VPC_IPS } from '../../../kube/resource-types.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { silentLogger } from '../../../runtime/log.ts';
import type { SeedRole } from '../../../sim/kube-api/seed-roles.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import { CloudHost } from '../../../sim/vpc/api/host.ts';
import { createInProcessApi } from '../../../sim/vpc/api/in-process.ts';
import { openTestClient } from '../../kube/kube-scene.ts';
import { contractClient } from '../../kube-api/contract/client.ts';
import { type RealApi, startRealApi } from '../../kube-api/real-api.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { bindRole } from '../../system/cluster.ts';
import { addInstance, CLOUD, configureSubnets, ipamdConfig, nodeOf } from './shell-scene.ts';

const NODE = 'n1';
const assets = process.env['KUBE_ASSETS'];

/** A token of a component's own ServiceAccount, which has the published ClusterRole and no other right. */
async function tokenOf(api: RealApi, admin: KubeClient, role: SeedRole): Promise<string> {
  await bindRole(admin, role);
  const accounts = '/api/v1/namespaces/kube-system/serviceaccounts';
  const client = contractClient(api.url, api.token, api.ca);
  await client.call('POST', accounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: role } });
  const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} };
  const { body } = await client.call('POST', `${accounts}/${role}/token`, request);
  const status = body['status'] as { token?: string } | undefined;
  if (status?.token === undefined) throw new Error(`no token for ${role}: ${JSON.stringify(body)}`);
  return status.token;
}

async function open(t: ExecutionContext, folder: string) {
  const api = await startRealApi(folder);
  const clientAs = (token: string) => {
    const { client, close } = openTestClient({ url: api.url, token, ca: api.ca });
    t.teardown(close);
    return client;
  };
  const admin = clientAs(api.token);
  const ipamdKube = clientAs(await tokenOf(api, admin, 'tke-eni-ipamd'));
  const agentKube = clientAs(await tokenOf(api, admin, 'tke-eni-agent'));
  return { api, admin, ipamdKube, agentKube };
}

async function runAgent(kube: KubeClient, signal: AbortSignal): Promise<SimulatedAgent> {
  const agent = new SimulatedAgent({ nodeName: NODE, kube, clock: systemClock, cooldownMs: 0, isQuick: true });
  const informer = openInformer<KubeObject>({
    client: kube,
    type: NODE_ENI_CONFIGS,
    query: { fieldSelector: `metadata.name=${NODE}` },
    decode: (object) => object,
    clock: systemClock,
    log: silentLogger,
    random: seededRandom(1),
  });
  informer.subscribe(({ after }) => {
    if (after !== undefined) agent.observe(after);
  });
  void informer.start(signal);
  void agent.run(signal);
  return agent;
}

if (assets === undefined) {
  test.skip('a real kube-apiserver: ipamd and an agent under their ClusterRoles (set KUBE_ASSETS to a folder with one)', () => {});
} else {
  test('a real kube-apiserver: ipamd and an agent under their ClusterRoles', async (t) => {
    t.timeout(180_000);
    const { api, admin, ipamdKube, agentKube } = await open(t, assets);
    const host = new CloudHost(CLOUD, systemClock, { seed: 5, taskMs: [50, 150] });
    addInstance(host, 'ins-0000real');
    const cloud = createTencentCloud({ api: createInProcessApi(host), clock: systemClock, random: seededRandom(1) });
    await configureSubnets(admin);
    let serial = 0;
    const ids = { next: () => (++serial).toString(16).padStart(16, '0'), now: () => new Date().toISOString() };
    const config = ipamdConfig('--enable-node-taint=true', '--enable-node-condition=true', '--pod-records=all');
    const ipamd = await startIpamd(config, {
      ...{
        clock: systemClock,
        log: silentLogger,
        random: seededRandom(1),
        ids,
        kube: ipamdKube,
        cloud,
        release: 'test',
      },
    });
    const stop = new AbortController();
    t.teardown(async () => {
      stop.abort(new Error('the test is over'));
      await ipamd.close();
      await api.close();
    });
    await admin.create(NODES, nodeOf(NODE, 'ins-0000real'));
    // With no Node left at all, nothing would be released: see docs/guarantees.md.
    await admin.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'another' } });
    // Before ipamd has made the definitions, the resource itself is not found.
    const necNow = (): Promise<KubeObject | undefined> =>
      admin.get(NODE_ENI_CONFIGS, { name: NODE }).catch((error: unknown) => {
        if (isKubeError(error, 'NOT_FOUND')) return undefined;
        throw error;
      });
    await waitUntil(necNow, { what: 'the NodeENIConfig', timeoutMs: 60_000 });
    const agent = await runAgent(agentKube, stop.signal);
    for (let pod = 0; pod < 12; pod++) agent.add(`pod-${pod}`);
    await waitUntil(() => (agent.running === 12 && agent.free >= 5 ? true : undefined), {
      what: 'twelve Pods with addresses and five warm ones',
      timeoutMs: 60_000,
      explain: () => JSON.stringify(host.counts()),
    });

    const [ip = ''] = agent.addresses;
    const pod = { namespace: 'default', name: 'web-0' };
    await admin.create(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: pod,
      spec: { nodeName: NODE, terminationGracePeriodSeconds: 0, containers: [{ name: 'main', image: 'none' }] },
    });
    const status = { phase: 'Running', podIP: ip, podIPs: [{ ip }] };
    await admin.patch(PODS, pod, { kind: 'merge', body: { status }, subresource: 'status' });
    const claim = await waitUntil(() => admin.get(VPC_IP_CLAIMS, pod), {
      what: 'the claim of the Pod',
      timeoutMs: 60_000,
    });
    t.like(claim['status'], { phase: 'Bound', ips: [ip] });
    t.truthy(
      await waitUntil(() => admin.get(VPC_IPS, { name: ip }), {
        what: 'its address',
        timeoutMs: 60_000,
      }),
    );

    const taints = async (): Promise<boolean | undefined> => {
      const spec = (await admin.get(NODES, { name: NODE }))?.['spec'] as { taints?: { key: string }[] } | undefined;
      return spec?.taints?.some(({ key }) => key.includes('eni-ip')) === true ? undefined : true;
    };
    await waitUntil(taints, { what: 'the taint is off', timeoutMs: 60_000 });

    await admin.delete(PODS, pod);
    for (let index = 0; index < 12; index++) agent.remove(`pod-${index}`);
    await waitUntil(() => (agent.running === 0 ? true : undefined), { what: 'no Pod runs', timeoutMs: 30_000 });
    await admin.delete(NODES, { name: NODE });
    host.model.state.removeInstance('ins-0000real');
    let seen: KubeObject | undefined;
    await waitUntil(
      async () => {
        seen = await necNow();
        return seen === undefined ? true : undefined;
      },
      {
        what: 'everything of the node is given back and its object gone',
        timeoutMs: 90_000,
        everyMs: 500,
        explain: () =>
          JSON.stringify({
            seen,
            enis: [...host.model.state.enis.values()].map((eni) => [eni.eniId, eni.isPrimary, eni.attachment]),
            counts: host.counts(),
            waiting: agent.waiting,
            running: agent.running,
          }),
      },
    );
    t.deepEqual(
      [...host.model.state.enis.values()].filter((eni) => !eni.isPrimary),
      [],
    );
  });
}
