import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { EIP_CLAIM_KIND } from '../../crd/eip-claim.ts';
import { NODE_ENI_CONFIG_KIND } from '../../crd/node-eni-config-fields.ts';
import { VPC_ENI_KIND } from '../../crd/vpc-eni.ts';
import { VPC_IP_KIND } from '../../crd/vpc-ip.ts';
import { VPC_IP_CLAIM_KIND } from '../../crd/vpc-ip-claim.ts';
import { isObject, type JsonObject } from '../../sim/kube-api/object.ts';
import { fieldsOfIpamd } from '../../tools/gen-status-policy.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { waitUntil } from '../support/wait-until.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { blockOf } from './doc-commands.ts';
import { PageUser } from './page-user.ts';
import { openApi } from './pod-token.ts';
import { awaitPods } from './pods.ts';
import { startRealCluster } from './real-cluster.ts';
import { POD_KINDS, SETTINGS_OF_ALL_KINDS, workloadName, workloadOfKind } from './workloads/kinds.ts';

// The admission policy `tke-eni-only-ipamd-writes-status` beside all that writes in a cluster: ipamd and agents, the
// controllers of Kubernetes, and people.

const MERGE = 'application/merge-patch+json';
const GUARDED = [NODE_ENI_CONFIG_KIND, VPC_IP_CLAIM_KIND, VPC_IP_KIND, VPC_ENI_KIND, EIP_CLAIM_KIND];
const IPAMD = 'system:serviceaccount:kube-system:tke-eni-ipamd';
const AGENT = 'system:serviceaccount:kube-system:tke-eni-agent';
const CONTROLLERS = ['generic-garbage-collector', 'namespace-controller'].map(
  (name) => `system:serviceaccount:kube-system:${name}`,
);
const README = readFileSync(join(import.meta.dirname, '../../conf/README.md'), 'utf8');
const WAY_OUT = blockOf(README, 'sh', 'Component `only-ipamd-writes-status`').trim().split('\n');

const running = clusterOfFile(
  () => startRealCluster({ nodes: ['node1', 'node2'].map((name) => ({ name, cores: 8 })) }),
  (cluster) => cluster.deploy({ ipamdSettings: SETTINGS_OF_ALL_KINDS }),
);

/** Lists objects of a kind in all namespaces. */
async function listOf(plural: string): Promise<readonly JsonObject[]> {
  const items = at(await running().kubectlJson('get', plural, '-A'), 'items');
  return Array.isArray(items) ? items.filter(isObject) : [];
}

/** Path of an object of ours. */
function pathOf(plural: string, object: JsonObject): string {
  const [namespace, name] = [at(object, 'metadata', 'namespace'), String(at(object, 'metadata', 'name'))];
  const place = namespace === undefined ? plural : `namespaces/${String(namespace)}/${plural}`;
  return `/apis/networking.tke.cloud.tencent.com/v1/${place}/${name}`;
}

/** Applies a manifest in a namespace. */
async function applyIn(namespace: string, manifest: string): Promise<void> {
  const object: JsonObject = JSON.parse(manifest);
  const metadata = isObject(object['metadata']) ? object['metadata'] : {};
  await running().apply(JSON.stringify({ ...object, metadata: { ...metadata, namespace } }));
}

/** What the server was asked to change of our objects, by whom, and how it answered: `update vpcips 200`. */
function writesOf(username: string): readonly string[] {
  return running()
    .auditLog()
    .filter((one) => at(one, 'user', 'username') === username)
    .filter((one) => at(one, 'objectRef', 'apiGroup') === 'networking.tke.cloud.tencent.com')
    .filter(({ verb }) => verb !== 'get' && verb !== 'list' && verb !== 'watch')
    .map(
      (one) =>
        `${String(one['verb'])} ${String(at(one, 'objectRef', 'resource'))} ${String(at(one, 'responseStatus', 'code'))}`,
    );
}

test.serial('status policy: with it ipamd makes Pods of every kind, and each kind of object', async (t) => {
  const cluster = running();
  for (const kind of POD_KINDS) await cluster.apply(workloadOfKind(kind, kind, 1));
  for (const kind of POD_KINDS) await awaitPods(cluster, `app=${kind}`, 1, { timeoutMs: 120_000 });
  await cluster.awaitKubectl(['wait', 'eipc', '--all', '--for=jsonpath={.status.phase}=Bound', '--timeout=50s'], 'EIP');
  for (const { plural } of GUARDED) t.true((await listOf(plural)).length > 0, plural);
  const done = new Set(writesOf(IPAMD));
  // The record of a Pod, a VpcIP, is made with its status.
  for (const { plural } of GUARDED)
    t.true(done.has(`update ${plural} 200`) || done.has(`create ${plural} 201`), `${plural}: ${[...done].join(', ')}`);
});

test.serial('status policy: nobody else changes a status, whatever their rights; all else they may', async (t) => {
  const cluster = running();
  const api = openApi(cluster);
  await cluster.kubectl('create', 'serviceaccount', 'editor');
  const admin = ['--clusterrole=cluster-admin', '--serviceaccount=default:editor'];
  await cluster.kubectl('create', 'clusterrolebinding', 'editor', ...admin);
  const editor = (await cluster.kubectl('create', 'token', 'editor')).trim();
  for (const kind of GUARDED) {
    const [object = {}] = await listOf(kind.plural);
    const path = `${pathOf(kind.plural, object)}?dryRun=All`;
    const status = isObject(object['status']) ? object['status'] : {};
    const fields = fieldsOfIpamd(kind).filter((field) => status[field] !== undefined);
    t.true(fields.length > 1, `${kind.kind} has ${Object.keys(status).join(', ')}`);
    for (const options of [{}, { token: editor }]) {
      for (const field of fields) {
        const body = { status: { [field]: null } };
        const told = await api.call('PATCH', path, body, { ...options, contentType: MERGE });
        t.is(told.status, 403, `${kind.plural} ${field}`);
        t.regex(
          String(told.body['message']),
          new RegExp(
            `tke-eni-ipamd alone writes status\\.${field} of ${kind.plural} ${String(at(object, 'metadata', 'name'))}; .{30}`,
          ),
        );
      }
      const metadata = { labels: { a: 'b' }, annotations: { a: 'b' }, finalizers: ['example.com/held'] };
      const labelled = await api.call('PATCH', path, { metadata }, { ...options, contentType: MERGE });
      t.is(labelled.status, 200, `${kind.plural}: ${String(labelled.body['message'])}`);
    }
  }
});

test.serial('status policy: kubectl says what to do instead, and the way out of conf/README.md is one', async (t) => {
  const cluster = running();
  const user = new PageUser(cluster);
  const [report = '', refuse = '', ...more] = WAY_OUT;
  t.deepEqual(more, []);
  const patch = ['patch', 'nec', 'node1', '--type=merge', '-p', '{"status": {"maxEIPs": 99}}'];
  const told = await cluster.tryKubectl(patch);
  t.not(told.code, 0);
  t.regex(
    told.stderr,
    /tke-eni-ipamd alone writes status\.maxEIPs of nodeeniconfigs node1; what a node is to have is in its spec/,
  );
  await user.sh(report);
  await cluster.awaitKubectl(patch, 'a status that a person changes');
  // Reported, not refused; ipamd undoes it.
  const isUndone = async () => at(await cluster.kubectlJson('get', 'nec', 'node1'), 'status', 'maxEIPs') !== 99;
  await waitUntil(isUndone, { what: 'ipamd undoes the edit', timeoutMs: 30_000, everyMs: 200 });
  await user.sh(refuse);
  const isRefused = async () => (await cluster.tryKubectl([...patch, '--dry-run=server'])).code !== 0;
  await waitUntil(isRefused, { what: 'the policy refuses again', timeoutMs: 30_000, everyMs: 200 });
});

test.serial('status policy: a namespace goes with all in it, and what is orphaned or held is let go', async (t) => {
  const cluster = running();
  await cluster.kubectl('create', 'namespace', 'shop');
  for (const kind of ['shared', 'static', 'eip', 'static-exclusive'] as const)
    await applyIn('shop', workloadOfKind(kind, kind, 1));
  for (const kind of ['shared', 'static', 'eip', 'static-exclusive'])
    await cluster.awaitKubectl(
      ['-n', 'shop', 'wait', 'pod', '-l', `app=${kind}`, '--for=condition=Ready', '--timeout=50s'],
      kind,
      120_000,
    );
  // The garbage collector takes the owner out of a claim that it orphans: an update of the object.
  const ownerOf = async () =>
    at(await cluster.kubectlJson('-n', 'shop', 'get', 'vipc', 'static-0'), 'metadata', 'ownerReferences', 0, 'kind');
  t.is(await ownerOf(), 'StatefulSet');
  await cluster.kubectl('-n', 'shop', 'delete', 'statefulset', 'static', '--cascade=orphan');
  await waitUntil(async () => (await ownerOf()) === undefined, {
    what: 'a claim without an owner',
    // The collector takes up kinds that it did not know every half a minute.
    timeoutMs: 90_000,
    everyMs: 200,
    explain: () => CONTROLLERS.map((user) => `${user}: ${writesOf(user).join(', ')}`).join('\n'),
  });
  const left = async () =>
    (await Promise.all(GUARDED.map(({ plural }) => listOf(plural))))
      .flat()
      .filter((one) => at(one, 'metadata', 'namespace') === 'shop');
  t.true((await left()).length >= 4);
  await cluster.kubectl('delete', 'namespace', 'shop', '--wait=false');
  await cluster.awaitKubectl(
    ['wait', 'namespace/shop', '--for=delete', '--timeout=50s'],
    'the end of the namespace',
    240_000,
  );
  t.deepEqual(await left(), []);
  for (const kind of POD_KINDS)
    await cluster.kubectl('delete', workloadName(kind, kind), '--cascade=foreground', '--wait');
  for (const user of CONTROLLERS) {
    const asked = writesOf(user);
    t.true(
      asked.some((one) => / 200$/.test(one)),
      `${user}: ${asked.join(', ')}`,
    );
    t.deepEqual(
      asked.filter((one) => / 403$/.test(one)),
      [],
    );
  }
});

test.serial('status policy: no write of ipamd or of an agent was refused meanwhile', (t) => {
  for (const user of [IPAMD, AGENT])
    t.deepEqual(
      writesOf(user).filter((one) => / 403$/.test(one)),
      [],
    );
});
