import test from 'ava';
import { isObject } from '../../sim/kube-api/object.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { awaitServing } from './deploy.ts';
import { openApi, tokenOfPod } from './pod-token.ts';
import { awaitPods, deploymentManifest, pingFrom, podsOf, spreadOverNodes } from './pods.ts';
import { startRealCluster } from './real-cluster.ts';

const AGENT = 'system:serviceaccount:kube-system:tke-eni-agent';

const MERGE = 'application/merge-patch+json';

// The components that an installation has without being asked for them.
const running = clusterOfFile(
  () => startRealCluster(),
  (cluster) => cluster.deploy(),
);

/** NET_ADMIN (12), SYS_PTRACE (19), SYS_ADMIN (21). @see capabilities(7) */
const THREE_CAPABILITIES = ((1n << 12n) | (1n << 19n) | (1n << 21n)).toString(16).padStart(16, '0');

test.serial('components: agents with three capabilities, bound to their nodes, give Pods addresses', async (t) => {
  const cluster = running();
  await cluster.apply(deploymentManifest('web', 4, { spec: spreadOverNodes('web') }));
  const pods = await awaitPods(cluster, 'app=web', 4);
  const [from, to] = [pods[0], pods.find(({ node }) => node !== pods[0]?.node)];
  if (from === undefined || to === undefined) return t.fail('not on two nodes');
  t.true(await pingFrom(cluster, from, to.ip));
  for (const node of cluster.nodes) {
    const status = await node.exec(['sh', '-c', 'cat /proc/$(pidof tke-eni-agent)/status']);
    t.regex(status, new RegExp(`^CapBnd:\\s+${THREE_CAPABILITIES}$`, 'm'), node.name);
    t.regex(status, /^NoNewPrivs:\s+1$/m, node.name);
    t.regex(status, /^Seccomp:\s+2$/m, node.name);
  }
});

test.serial(
  'components: each agent writes its own NodeENIConfig and node, and nothing that it asks is refused',
  async (t) => {
    const cluster = running();
    // One that goes says on its Node that nothing can be given: who never shrinks, writes no Node.
    const agents = ['pod', '-l', 'k8s-app=tke-eni-agent'];
    await cluster.kubectl('-n', 'kube-system', 'delete', ...agents, '--wait', '--timeout=50s');
    await awaitServing(cluster);
    const list = await cluster.kubectlJson('get', 'nec');
    const necs = isObject(list) && Array.isArray(list['items']) ? list['items'] : [];
    t.deepEqual(necs.map((nec) => at(nec, 'metadata', 'name')).sort(), cluster.nodes.map(({ name }) => name).sort());
    for (const nec of necs) t.true(Number(at(nec, 'spec', 'observedSupplyEpoch')) > 0);
    const asked = cluster.auditLog().filter((one) => at(one, 'user', 'username') === AGENT);
    const written = asked.filter((one) => ['update', 'patch'].includes(String(one['verb'])));
    const resources = written.map(
      (one) => `${at(one, 'objectRef', 'resource')}/${at(one, 'objectRef', 'subresource') ?? ''}`,
    );
    for (const resource of ['nodeeniconfigs/', 'nodes/status']) t.true(resources.includes(resource), resource);
    // The node in the token is the node that is written, before any policy looks.
    for (const one of written.filter((entry) => at(entry, 'objectRef', 'resource') !== 'events'))
      t.deepEqual(at(one, 'user', 'extra', 'authentication.kubernetes.io/node-name'), [at(one, 'objectRef', 'name')]);
    t.deepEqual(
      asked.filter((one) => at(one, 'responseStatus', 'code') === 403),
      [],
    );
  },
);

test.serial("components: the token of an agent writes its own node's objects, and no other node's", async (t) => {
  const cluster = running();
  const api = openApi(cluster);
  const agents = await podsOf(cluster, 'k8s-app=tke-eni-agent', 'kube-system');
  t.deepEqual(agents.map(({ node }) => node).sort(), cluster.nodes.map(({ name }) => name).sort());
  for (const agent of agents) {
    const token = await tokenOfPod(cluster, agent);
    for (const { name } of cluster.nodes) {
      const nec = `/apis/networking.tke.cloud.tencent.com/v1/nodeeniconfigs/${name}`;
      const { body } = await api.call('GET', nec);
      // Whatever the version is by now: the policy speaks before a conflict is looked for.
      const written = await api.call('PUT', `${nec}?dryRun=All`, body, { token });
      const patched = await api.call(
        'PATCH',
        `/api/v1/nodes/${name}/status?dryRun=All`,
        {},
        { token, contentType: MERGE },
      );
      for (const { status, body: answer } of [written, patched]) {
        const said = `${agent.name} of ${agent.node} to ${name}: ${status} ${String(answer['message'])}`;
        if (name === agent.node) t.true(status === 200 || status === 409, said);
        else t.regex(said, /: 403 .*tke-eni-agent-own-node-only/);
      }
    }
  }
});

test.serial('components: the server finds no fault with the types in the policies', async (t) => {
  const cluster = running();
  for (const name of ['tke-eni-agent-own-node-only', 'tke-eni-only-ipamd-writes-status']) {
    const policyName = `validatingadmissionpolicy/${name}`;
    await cluster.kubectl('wait', policyName, '--for=jsonpath={.status.observedGeneration}=1', '--timeout=60s');
    const policy = await cluster.kubectlJson('get', policyName);
    t.deepEqual(at(policy, 'status', 'typeChecking') ?? {}, {}, name);
  }
});
