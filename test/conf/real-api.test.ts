import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { blockOf } from '../cluster/doc-commands.ts';
import type { Answer, ContractClient } from '../kube-api/contract/client.ts';
import { at, versionOf } from '../kube-api/contract/contract-case.ts';
import { startRealApi } from '../kube-api/real-api.ts';
import { CILIUM_NODE_DEFINITION } from '../support/cilium-node-definition.ts';
import { waitUntil } from '../support/wait-until.ts';
import { adminOf, createAll, requestToken, tokenOnNode, untilEstablished } from './cluster-scene.ts';
import { KUBERNETES_FOLDER, objectsOf, readResources } from './read-manifests.ts';
import { renderExample } from './render-example.ts';

const NECS = '/apis/networking.tke.cloud.tencent.com/v1/nodeeniconfigs';
const VPC_IPS = '/apis/networking.tke.cloud.tencent.com/v1/vpcips';
const AGENT = 'tke-eni-agent';
const MERGE = 'application/merge-patch+json';
const assets = process.env['KUBE_ASSETS'];

/** Writes the whole object back with a change, as agent and ipamd do. */
async function update(api: ContractClient, token: string, path: string, change: object): Promise<Answer> {
  const { body } = await api.call('GET', path);
  return api.call('PUT', path, { ...body, ...change }, { token });
}

const patchStatus = (api: ContractClient, token: string, node: string) =>
  api.call(
    'PATCH',
    `/api/v1/nodes/${node}/status`,
    { status: { capacity: { 'tke.cloud.tencent.com/eni-ip': '3' } } },
    { token, contentType: MERGE },
  );

const CILIUM_NODES = '/apis/cilium.io/v2/ciliumnodes';

const messageOf = (answer: Answer) => String(answer.body['message']);

async function openScene(folder: string) {
  const server = await startRealApi(folder);
  const admin = adminOf(server);
  await createAll(admin, readResources(join(KUBERNETES_FOLDER, '../crd')));
  await createAll(admin, readResources(join(KUBERNETES_FOLDER, 'rbac')));
  await createAll(admin, [CILIUM_NODE_DEFINITION]);
  await untilEstablished(admin);
  const tokens = {
    one: await tokenOnNode(admin, AGENT, 'n1'),
    two: await tokenOnNode(admin, AGENT, 'n2'),
    unbound: await requestToken(admin, AGENT),
    ipamd: await requestToken(admin, 'tke-eni-ipamd'),
  };
  const metadata = (name: string) => ({ name });
  const nec = { apiVersion: 'networking.tke.cloud.tencent.com/v1', kind: 'NodeENIConfig' };
  await createAll(admin, [
    { ...nec, metadata: metadata('n1'), spec: {}, status: { supplyEpoch: 1 } },
    { ...nec, metadata: metadata('n2'), spec: {}, status: { supplyEpoch: 1 } },
  ]);
  await createCiliumNodes(admin);
  const made = await admin.call('POST', VPC_IPS, {
    ...nec,
    kind: 'VpcIP',
    metadata: metadata('10.0.0.9'),
    spec: { nodeName: 'n1', ip: '10.0.0.9', type: 'ENI' },
  });
  if (made.status !== 201) throw new Error(`VpcIP: ${JSON.stringify(made)}`);
  await createAll(admin, readResources(join(KUBERNETES_FOLDER, 'components/agent-own-node-only')));
  // Until it is in force, a write of another node's object goes through.
  const isInForce = async () =>
    (await update(admin, tokens.two, `${NECS}/n1`, { spec: { desiredRouteENIIP: 9 } })).status === 403;
  await waitUntil(isInForce, { what: 'the policy is in force', timeoutMs: 60_000, everyMs: 200 });
  return { server, admin, tokens };
}

async function createCiliumNodes(admin: ContractClient): Promise<void> {
  await createAll(admin, readResources(join(KUBERNETES_FOLDER, 'components/agent-cilium-node')));
  for (const name of ['n1', 'n2']) {
    const body = { apiVersion: 'cilium.io/v2', kind: 'CiliumNode', metadata: { name }, spec: { ipam: { pool: {} } } };
    // The definition may be established and not served yet.
    const isMade = async () => [201, 409].includes((await admin.call('POST', CILIUM_NODES, body)).status);
    await waitUntil(isMade, { what: `CiliumNode ${name}`, timeoutMs: 30_000, everyMs: 200 });
  }
}

if (assets === undefined)
  test.skip('agent-own-node-only: a real kube-apiserver enforces it (set KUBE_ASSETS to a folder with one)', () => {});
else {
  const { server, admin, tokens } = await openScene(assets);
  test.after.always(() => server.close());

  test.serial('base: the server takes every object, and knows every field', async (t) => {
    const kinds = ['DaemonSet', 'Deployment', 'ConfigMap', 'Service', 'PodDisruptionBudget'];
    const objects = readResources(KUBERNETES_FOLDER).filter((one) => kinds.includes(String(one['kind'])));
    t.deepEqual(objects.map((one) => one['kind']).sort(), [...kinds].sort());
    await t.notThrowsAsync(createAll(admin, objects));
  });

  test.serial('agent-least-privilege: the server takes an agent that may not gain privileges', async (t) => {
    const objects = renderExample([], { kubectl: join(assets, 'kubectl') });
    const agent = objects.find((one) => one['kind'] === 'DaemonSet');
    const path = '/apis/apps/v1/namespaces/kube-system/daemonsets?dryRun=All&fieldValidation=Strict';
    const answer = await admin.call('POST', path, { ...agent, metadata: { name: 'least', namespace: 'kube-system' } });
    t.is(answer.status, 201, messageOf(answer));
  });

  test.serial('agent-own-node-only: an agent updates its own NodeENIConfig and patches its own node', async (t) => {
    const answer = await update(admin, tokens.one, `${NECS}/n1`, { spec: { desiredRouteENIIP: 5 } });
    t.is(answer.status, 200, messageOf(answer));
    t.is(at(answer.body, 'spec', 'desiredRouteENIIP'), 5);
    const patched = await patchStatus(admin, tokens.one, 'n1');
    t.is(patched.status, 200, messageOf(patched));
  });

  test.serial("agent-own-node-only: another node's objects are refused, with both names", async (t) => {
    const before = versionOf(await admin.call('GET', `${NECS}/n2`));
    const nec = await update(admin, tokens.one, `${NECS}/n2`, { spec: { desiredRouteENIIP: 5 } });
    t.is(nec.status, 403);
    t.regex(messageOf(nec), /tke-eni-agent of node n1 may not update nodeeniconfigs n2: it updates nodeeniconfigs n1/);
    const status = await patchStatus(admin, tokens.one, 'n2');
    t.is(status.status, 403);
    t.regex(messageOf(status), /tke-eni-agent of node n1 may not update nodes\/status n2/);
    t.is(versionOf(await admin.call('GET', `${NECS}/n2`)), before);
  });

  test.serial('agent-own-node-only: an agent patches the status of its own CiliumNode, and of no other', async (t) => {
    const patch = (token: string, name: string, path: string, body: object) =>
      admin.call('PATCH', `${CILIUM_NODES}/${name}${path}`, body, { token, contentType: MERGE });
    const used = { status: { ipam: { used: { '10.0.0.1': { owner: 'a/b' } } } } };
    const own = await patch(tokens.one, 'n1', '/status', used);
    t.is(own.status, 200, messageOf(own));
    const other = await patch(tokens.one, 'n2', '/status', used);
    t.is(other.status, 403);
    t.regex(messageOf(other), /tke-eni-agent of node n1 may not update ciliumnodes\/status n2/);
    const pool = { spec: { ipam: { pool: { '10.0.0.9': {} } } } };
    for (const name of ['n1', 'n2']) t.is((await patch(tokens.one, name, '', pool)).status, 403, name);
    t.is((await admin.call('DELETE', `${CILIUM_NODES}/n1`, undefined, { token: tokens.one })).status, 403);
    t.is((await patch(tokens.two, 'n2', '/status', used)).status, 200);
  });

  test.serial('agent-own-node-only: every deletion and every other kind is refused', async (t) => {
    for (const path of [`${NECS}/n1`, `${NECS}/n2`, `${VPC_IPS}/10.0.0.9`]) {
      const answer = await admin.call('DELETE', path, undefined, { token: tokens.one });
      t.is(answer.status, 403, path);
      t.regex(messageOf(answer), /tke-eni-agent of node n1 may not delete/, path);
      t.is((await admin.call('GET', path)).status, 200, path);
    }
    const record = await update(admin, tokens.one, `${VPC_IPS}/10.0.0.9`, { status: { phase: 'Assigned' } });
    t.is(record.status, 403);
    t.regex(messageOf(record), /may not update vpcips 10\.0\.0\.9/);
  });

  test.serial('agent-own-node-only: the status of its NodeENIConfig is not the agent’s to change', async (t) => {
    const answer = await update(admin, tokens.one, `${NECS}/n1`, { status: { supplyEpoch: 2 } });
    t.is(answer.status, 403);
    t.regex(messageOf(answer), /may not change the status of nodeeniconfigs n1: ipamd alone does/);
    const erased = await update(admin, tokens.one, `${NECS}/n1`, { status: undefined });
    t.is(erased.status, 403);
    t.is(at((await admin.call('GET', `${NECS}/n1`)).body, 'status', 'supplyEpoch'), 1);
  });

  test.serial(
    'agent-own-node-only: a token that names no node is refused, with the reason and what to do',
    async (t) => {
      const answer = await update(admin, tokens.unbound, `${NECS}/n1`, { spec: { desiredRouteENIIP: 6 } });
      t.is(answer.status, 403);
      t.regex(messageOf(answer), /names no node .*Kubernetes 1\.32 or newer.*remove the ValidatingAdmissionPolicy/);
      t.is((await patchStatus(admin, tokens.unbound, 'n1')).status, 403);
    },
  );

  test.serial('agent-own-node-only: reading and Events are as before', async (t) => {
    t.is((await admin.call('GET', `${NECS}/n2`, undefined, { token: tokens.one })).status, 200);
    const event = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { generateName: 'e-', namespace: 'default' },
      involvedObject: { kind: 'Node', name: 'n1' },
      reason: 'RuleMode',
    };
    const answer = await admin.call('POST', '/api/v1/namespaces/default/events', event, { token: tokens.one });
    t.is(answer.status, 201, messageOf(answer));
  });

  test.serial('agent-own-node-only: ipamd and administrators are not concerned', async (t) => {
    const status = await update(admin, tokens.ipamd, `${NECS}/n1`, { status: { supplyEpoch: 3 } });
    t.is(status.status, 200, messageOf(status));
    const mine = await update(admin, server.token, `${NECS}/n1`, { spec: { desiredRouteENIIP: 7 } });
    t.is(mine.status, 200, messageOf(mine));
    t.is((await patchStatus(admin, tokens.ipamd, 'n2')).status, 200);
    t.is((await admin.call('DELETE', `${NECS}/n2`, undefined, { token: tokens.ipamd })).status, 200);
  });

  test.serial(
    'only-ipamd-writes-status: a change of the status by anybody else is refused, with what to do',
    async (t) => {
      await createAll(admin, readResources(join(KUBERNETES_FOLDER, 'components/only-ipamd-writes-status')));
      const nec = {
        apiVersion: 'networking.tke.cloud.tencent.com/v1',
        kind: 'NodeENIConfig',
        metadata: { name: 'n3' },
      };
      await createAll(admin, [{ ...nec, spec: {}, status: { supplyEpoch: 1 } }]);
      const edit = (token: string, status: object): Promise<Answer> =>
        admin.call('PATCH', `${NECS}/n3`, { status }, { token, contentType: MERGE });
      // Another value each time: until it is in force an edit goes through, and the same again is no change.
      let tries = 0;
      const isInForce = async () => (await edit(server.token, { instanceID: `ins-${++tries}` })).status === 403;
      await waitUntil(isInForce, { what: 'the policy is in force', timeoutMs: 60_000, everyMs: 200 });
      const refused = await edit(server.token, { supplyEpoch: 2, routeENIs: 1 });
      t.is(refused.status, 403);
      t.regex(
        messageOf(refused),
        /tke-eni-ipamd alone writes status\.supplyEpoch, status\.routeENIs of nodeeniconfigs n3; /,
      );
      t.is((await update(admin, server.token, `${NECS}/n3`, { status: undefined })).status, 403);
      const own = await edit(tokens.ipamd, { supplyEpoch: 2 });
      t.is(own.status, 200, messageOf(own));
      const spec = await update(admin, server.token, `${NECS}/n3`, { spec: { maxRouteENI: 1 } });
      t.is(spec.status, 200, messageOf(spec));
      const labelled = await admin.call(
        'PATCH',
        `${NECS}/n3`,
        { metadata: { labels: { a: 'b' } } },
        { contentType: MERGE },
      );
      t.is(labelled.status, 200, messageOf(labelled));
      t.is((await admin.call('DELETE', `${NECS}/n3`)).status, 200);
    },
  );

  test.serial(
    'ingresses: the cloud controller manager gets the Secrets that a Role names, and no others',
    async (t) => {
      const own = readResources(join(KUBERNETES_FOLDER, 'cloud-controller-manager'));
      await createAll(
        admin,
        own.filter(({ kind }) => String(kind).startsWith('Cluster') || kind === 'ServiceAccount'),
      );
      await createAll(admin, readResources(join(KUBERNETES_FOLDER, 'components/ingresses')));
      const metadata = { namespace: 'shop' };
      await createAll(admin, [
        { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } },
        { apiVersion: 'v1', kind: 'Secret', metadata: { ...metadata, name: 'shop-tls' } },
        { apiVersion: 'v1', kind: 'Secret', metadata: { ...metadata, name: 'other' } },
        {
          ...{ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata: { ...metadata, name: 'shop' } },
          spec: { ingressClassName: 'qcloud', defaultBackend: { service: { name: 'shop', port: { number: 80 } } } },
        },
      ]);
      const page = readFileSync(new URL('../../docs/cloud-controller-manager.md', import.meta.url), 'utf8');
      await createAll(admin, objectsOf(blockOf(page, 'yaml', 'Rights to Secrets of Ingresses')));
      const token = await requestToken(admin, 'tke-cloud-controller-manager');
      const call = async (method: 'GET' | 'PATCH', path: string, body?: object): Promise<number> =>
        (await admin.call(method, path, body, { token, contentType: MERGE })).status;
      const secrets = '/api/v1/namespaces/shop/secrets';
      const isGranted = async () => (await call('GET', `${secrets}/shop-tls`)) === 200;
      await waitUntil(isGranted, { what: 'the right to the Secret', timeoutMs: 30_000, everyMs: 200 });
      t.is(await call('GET', `${secrets}/other`), 403);
      t.is(await call('GET', secrets), 403);
      t.is(await call('GET', '/api/v1/secrets'), 403);
      const ingresses = '/apis/networking.k8s.io/v1/namespaces/shop/ingresses';
      t.is(await call('GET', '/apis/networking.k8s.io/v1/ingresses'), 200);
      t.is(await call('GET', '/apis/networking.k8s.io/v1/ingressclasses'), 200);
      t.is(await call('PATCH', `${ingresses}/shop`, { metadata: { annotations: { a: 'b' } } }), 200);
      const status = { status: { loadBalancer: { ingress: [{ ip: '10.0.0.1' }] } } };
      t.is(await call('PATCH', `${ingresses}/shop/status`, status), 200);
    },
  );
}
