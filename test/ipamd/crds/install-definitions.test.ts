import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { parse } from 'yaml';
import { SCHEMA_ANNOTATION, SCHEMA_NUMBER } from '../../../crd/custom-resource-definition.ts';
import { RESOURCE_KINDS } from '../../../crd/kinds.ts';
import { NODE_ENI_CONFIG_KIND } from '../../../crd/node-eni-config-fields.ts';
import { installDefinitions } from '../../../ipamd/crds/install-definitions.ts';
import type { KubeClient, KubeObject } from '../../../kube/kube-client.ts';
import { CUSTOM_RESOURCE_DEFINITIONS, resourceTypeOf } from '../../../kube/resource-types.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { serviceAccountUser } from '../../../sim/kube-api/auth/tokens.ts';
import { startInProcessApi } from '../../../sim/kube-api/in-process.ts';
import { seedClusterRole } from '../../../sim/kube-api/seed-roles.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const NEC = { name: 'nodeeniconfigs.networking.tke.cloud.tencent.com' };
const CLUSTER_ROLES = rbac('clusterroles', 'ClusterRole');
const CLUSTER_ROLE_BINDINGS = rbac('clusterrolebindings', 'ClusterRoleBinding');

function rbac(plural: string, kind: string) {
  return { group: 'rbac.authorization.k8s.io', version: 'v1', plural, kind, isNamespaced: false };
}

function start(authorization: 'all' | 'rbac' = 'all') {
  const clock = new VirtualClock();
  const server = startInProcessApi({ clock, authorization });
  const kube = server.client();
  const install = (client: KubeClient = kube, kinds = RESOURCE_KINDS) =>
    clock.run(installDefinitions({ client, clock, log: silentLogger, kinds }, new AbortController().signal));
  const read = async () => {
    const object = await kube.get(CUSTOM_RESOURCE_DEFINITIONS, NEC);
    if (object === undefined) throw new Error('no definition');
    return object;
  };
  return { clock, server, kube, install, read };
}

type Installed = KubeObject & {
  readonly spec: { readonly versions: readonly Record<string, unknown>[]; readonly names: Record<string, unknown> };
};

const outcomesOf = (list: readonly { readonly outcome: string }[]) => [...new Set(list.map((one) => one.outcome))];

test('installDefinitions: makes what is missing, and is done when the API server serves it', async (t) => {
  const { kube, install } = start();
  t.deepEqual(outcomesOf(await install()), ['created']);
  for (const kind of RESOURCE_KINDS) t.deepEqual((await kube.listPage(resourceTypeOf(kind), {})).items, [], kind.kind);
});

test('installDefinitions: writes nothing when nothing changed', async (t) => {
  const { install, read } = start();
  await install();
  const before = await read();
  t.deepEqual(outcomesOf(await install()), ['unchanged']);
  t.is((await read()).metadata.resourceVersion, before.metadata.resourceVersion);
});

test('installDefinitions: leaves the manifests of a first install as they are', async (t) => {
  const { kube, install, read } = start();
  const folder = join(import.meta.dirname, '../../../conf/crd');
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.yaml'))) {
    const definition: unknown = parse(readFileSync(join(folder, file), 'utf8'));
    await kube.create(CUSTOM_RESOURCE_DEFINITIONS, definition as KubeObject);
  }
  const before = await read();
  const outcomes = await install();
  t.is(outcomes.length, RESOURCE_KINDS.length);
  t.deepEqual(outcomesOf(outcomes), ['unchanged']);
  t.is((await read()).metadata.resourceVersion, before.metadata.resourceVersion);
});

test('installDefinitions: upgrades a definition of an older release and keeps what others set', async (t) => {
  const { kube, install, read } = start();
  await install();
  const installed = (await read()) as Installed;
  const schema = { openAPIV3Schema: { type: 'object' } };
  await kube.update(CUSTOM_RESOURCE_DEFINITIONS, {
    ...installed,
    metadata: { ...installed.metadata, labels: { team: 'net' }, annotations: { [SCHEMA_ANNOTATION]: '1', note: 'x' } },
    spec: {
      ...installed.spec,
      names: { ...installed.spec.names, categories: ['network'] },
      versions: installed.spec.versions.map((version) => ({ ...version, schema, subresources: { status: {} } })),
    },
  });
  t.deepEqual([...outcomesOf(await install())].toSorted(), ['unchanged', 'updated']);
  const upgraded = (await read()) as Installed;
  t.like(upgraded.metadata, {
    labels: { team: 'net' },
    annotations: { note: 'x', [SCHEMA_ANNOTATION]: String(SCHEMA_NUMBER) },
  });
  t.deepEqual(upgraded.spec.names['categories'], ['network']);
  t.deepEqual(upgraded.spec.versions[0]?.['schema'], installed.spec.versions[0]?.['schema']);
  // With it, nothing that ipamd writes to the status would arrive.
  t.is(upgraded.spec.versions[0]?.['subresources'], undefined);
});

/** The definition of NodeENIConfigs that another program has: with fields, a status and versions of its own. */
function foreignDefinition(
  parts: Readonly<Record<string, unknown>>,
  annotations: Readonly<Record<string, string>> = {},
) {
  const { singular, shortNames, plural } = NODE_ENI_CONFIG_KIND;
  const names = { kind: 'NodeENIConfig', listKind: 'NodeENIConfigList', plural, singular, shortNames };
  const schema = {
    openAPIV3Schema: {
      type: 'object',
      properties: {
        spec: { type: 'object', properties: { maxRouteENI: { type: 'integer' } } },
        status: { type: 'object', properties: { eniInfos: { type: 'array', items: { type: 'object' } } } },
      },
    },
  };
  const version = { name: 'v1', served: true, storage: true, schema, ...parts };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { ...NEC, annotations },
    spec: { group: 'networking.tke.cloud.tencent.com', scope: 'Cluster', names, versions: [version] },
  };
}

const schemaOf = (status: object) => ({
  schema: { openAPIV3Schema: { type: 'object', properties: { status: { type: 'object', ...status } } } },
});
const FOREIGN: Readonly<Record<string, readonly [Readonly<Record<string, unknown>>, RegExp]>> = {
  'fields that ours lacks': [schemaOf({ properties: { eniLimit: { type: 'integer' } } }), /may have status\.eniLimit,/],
  'fields deep in a list': [
    schemaOf({
      properties: {
        eniInfos: { type: 'array', items: { type: 'object', properties: { trunk: { type: 'boolean' } } } },
      },
    }),
    /may have status\.eniInfos\[\]\.trunk,/,
  ],
  'unknown fields': [schemaOf({ 'x-kubernetes-preserve-unknown-fields': true }), /may have status\.\*,/],
  'any names of fields': [schemaOf({ additionalProperties: { type: 'string' } }), /may have status\.\*,/],
  'a status subresource': [{ subresources: { status: {} } }, /it has a status subresource/],
  'another version': [{ name: 'v1alpha1' }, /it has no version v1;/],
};

for (const [what, [parts, message]] of Object.entries(FOREIGN)) {
  test(`installDefinitions: refuses another program's definition with ${what}, and writes none`, async (t) => {
    const { kube, server, install, read } = start();
    await kube.create(CUSTOM_RESOURCE_DEFINITIONS, foreignDefinition(parts));
    const before = await read();
    await t.throwsAsync(install(), { code: 'DEFINITION', message });
    t.deepEqual(await read(), before);
    t.is(server.objects('customresourcedefinitions', 'apiextensions.k8s.io').length, 1);
  });
}

test('installDefinitions: refuses what another program has applied over a definition of ours', async (t) => {
  const { kube, install, read } = start();
  await install();
  const installed = (await read()) as Installed;
  const [parts] = FOREIGN['fields that ours lacks'] ?? [{}];
  const { spec } = foreignDefinition({ ...parts, subresources: { status: {} } });
  await kube.update(CUSTOM_RESOURCE_DEFINITIONS, { ...installed, spec: { ...installed.spec, ...spec } });
  const before = await read();
  await t.throwsAsync(install(), { code: 'DEFINITION', message: /is another program's/ });
  t.deepEqual(await read(), before);
});

test('installDefinitions: upgrades the definitions of the last release', async (t) => {
  const { kube, install, read } = start();
  const folder = join(import.meta.dirname, '../../crd/baseline');
  for (const file of readdirSync(folder)) {
    const definition: unknown = parse(readFileSync(join(folder, file), 'utf8'));
    await kube.create(CUSTOM_RESOURCE_DEFINITIONS, definition as KubeObject);
  }
  t.true(outcomesOf(await install()).includes('updated'));
  t.is((await read()).metadata.annotations?.[SCHEMA_ANNOTATION], String(SCHEMA_NUMBER));
});

test('installDefinitions: does not downgrade what a newer release installed', async (t) => {
  const { kube, install, read } = start();
  await install();
  const installed = (await read()) as Installed;
  const annotations = { [SCHEMA_ANNOTATION]: '99' };
  const newer = { ...installed, metadata: { ...installed.metadata, annotations } };
  const versions = newer.spec.versions.map((version) => ({ ...version, additionalPrinterColumns: [] }));
  await kube.update(CUSTOM_RESOURCE_DEFINITIONS, { ...newer, spec: { ...newer.spec, versions } });
  const before = await read();
  t.deepEqual(outcomesOf(await install(kube, [NODE_ENI_CONFIG_KIND])), ['newer']);
  t.is((await read()).metadata.resourceVersion, before.metadata.resourceVersion);
});

test('installDefinitions: lets two replicas start at once', async (t) => {
  const clock = new VirtualClock();
  const server = startInProcessApi({ clock, latencyMs: 10 });
  const one = () =>
    installDefinitions({ client: server.client(), clock, log: silentLogger }, new AbortController().signal);
  const [first, second] = await clock.run(Promise.all([one(), one()]));
  const created = [...first, ...second].filter(({ outcome }) => outcome === 'created').length;
  t.is(created, RESOURCE_KINDS.length);
});

test('installDefinitions: refuses a definition of another scope', async (t) => {
  const { kube, install } = start();
  const spec = {
    group: 'networking.tke.cloud.tencent.com',
    scope: 'Namespaced',
    names: {
      kind: 'NodeENIConfig',
      listKind: 'NodeENIConfigList',
      plural: 'nodeeniconfigs',
      singular: 'nodeeniconfig',
    },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
  };
  await kube.create(CUSTOM_RESOURCE_DEFINITIONS, {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: NEC,
    spec,
  });
  await t.throwsAsync(install(), { code: 'DEFINITION', message: /has to be Cluster.*delete it/ });
});

/** Makes a client with the published ClusterRole, less some verbs on definitions. */
async function clientWithout(parts: ReturnType<typeof start>, ...verbs: readonly string[]): Promise<KubeClient> {
  const role = seedClusterRole('tke-eni-ipamd') as KubeObject & { readonly rules: readonly Record<string, string[]>[] };
  const rules = role.rules.map((rule) =>
    rule['resources']?.includes('customresourcedefinitions') === true
      ? { ...rule, verbs: (rule['verbs'] ?? []).filter((verb) => !verbs.includes(verb)) }
      : rule,
  );
  await parts.kube.create(CLUSTER_ROLES, { ...role, rules });
  await parts.kube.create(CLUSTER_ROLE_BINDINGS, {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: 'ipamd' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'tke-eni-ipamd' },
    subjects: [{ kind: 'ServiceAccount', namespace: 'kube-system', name: 'ipamd' }],
  });
  return parts.server.client({ user: serviceAccountUser('kube-system', 'ipamd') });
}

test('installDefinitions: needs no right that the published ClusterRole lacks', async (t) => {
  const parts = start('rbac');
  t.deepEqual(outcomesOf(await parts.install(await clientWithout(parts))), ['created']);
});

test('installDefinitions: names the right that is missing when a definition is not there', async (t) => {
  const parts = start('rbac');
  const client = await clientWithout(parts, 'create');
  await t.throwsAsync(parts.install(client), {
    code: 'DEFINITION',
    message: /lacks the right to create customresourcedefinitions/,
  });
});

test('installDefinitions: goes on with the definitions that are there when it may not look at them', async (t) => {
  const parts = start('rbac');
  await parts.install();
  const client = await clientWithout(parts, 'create', 'update', 'get');
  t.deepEqual(outcomesOf(await parts.install(client)), ['forbidden']);
});
