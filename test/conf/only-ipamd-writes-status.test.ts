import { join } from 'node:path';
import test from 'ava';
import { RESOURCE_KINDS } from '../../crd/kinds.ts';
import type { ResourceKind } from '../../crd/resource-kind.ts';
import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { apiVersionOf, resourceTypeOf } from '../../kube/resource-types.ts';
import { ADMIN, serviceAccountUser, type User } from '../../sim/kube-api/auth/tokens.ts';
import { startInProcessApi } from '../../sim/kube-api/in-process.ts';
import { installKinds } from '../../sim/kube-api/install-kinds.ts';
import type { JsonObject } from '../../sim/kube-api/object.ts';
import { fieldsOfIpamd } from '../../tools/gen-status-policy.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { KUBERNETES_FOLDER, readResources } from './read-manifests.ts';

const [POLICY, BINDING] = readResources(join(KUBERNETES_FOLDER, 'components/only-ipamd-writes-status'));
const IPAMD = serviceAccountUser('kube-system', 'tke-eni-ipamd');
const OTHERS: readonly User[] = [
  ADMIN,
  serviceAccountUser('kube-system', 'tke-eni-agent'),
  serviceAccountUser('kube-system', 'tke-eni-ip-scheduler'),
  serviceAccountUser('kube-system', 'tke-cloud-controller-manager'),
  // The same name in another namespace.
  serviceAccountUser('default', 'tke-eni-ipamd'),
];

/** Kinds that people write: a manifest of theirs, which has no status, may replace the object. */
const OF_PEOPLE = ['staticipconfigs', 'underlayips'];
const KINDS = RESOURCE_KINDS.filter(({ plural }) => !OF_PEOPLE.includes(plural));

/** Any two values that a field may have: what the schema asks of it is not what is tried here. */
const [ONE, OTHER]: readonly JsonObject[] = [{ list: [{ id: 'a', count: 1 }] }, { list: [{ id: 'a', count: 2 }] }];

/** An API server with the policy in force, which checks no schema. */
async function scene() {
  const clock = new VirtualClock();
  const server = startInProcessApi({ clock, isLight: true });
  const admin = server.client();
  await clock.run(installKinds(admin));
  const type = { group: 'admissionregistration.k8s.io', version: 'v1', isNamespaced: false };
  const kinds = [
    ['ValidatingAdmissionPolicy', 'validatingadmissionpolicies', POLICY],
    ['ValidatingAdmissionPolicyBinding', 'validatingadmissionpolicybindings', BINDING],
  ] as const;
  // Read from YAML: objects of the API.
  for (const [kind, plural, object] of kinds)
    await clock.run(admin.create({ ...type, kind, plural }, object as unknown as KubeObject));
  const as = (user: User) => new Writer(server.client({ user }), clock);
  return { as, admin: as(ADMIN), ipamd: as(IPAMD) };
}

/** Makes writes and returns what they were told: `done`, or the message of the refusal. */
class Writer {
  readonly #kube: KubeClient;
  readonly #clock: VirtualClock;

  constructor(kube: KubeClient, clock: VirtualClock) {
    this.#kube = kube;
    this.#clock = clock;
  }

  create(kind: ResourceKind, parts: JsonObject): Promise<string> {
    const type = resourceTypeOf(kind);
    const head = { apiVersion: apiVersionOf(type), kind: kind.kind, metadata: refOf(kind) };
    return this.#try(() => this.#kube.create(type, { ...head, ...parts }));
  }

  patch(kind: ResourceKind, body: JsonObject): Promise<string> {
    return this.#try(() => this.#kube.patch(resourceTypeOf(kind), refOf(kind), { kind: 'merge', body }));
  }

  /** Writes the whole object back, as `kubectl replace` does. */
  replace(kind: ResourceKind, change: (object: KubeObject) => KubeObject): Promise<string> {
    return this.#try(async () => {
      const object = await this.#kube.get(resourceTypeOf(kind), refOf(kind));
      if (object === undefined) throw new Error('it is gone');
      return await this.#kube.update(resourceTypeOf(kind), change(object));
    });
  }

  delete(kind: ResourceKind): Promise<string> {
    return this.#try(() => this.#kube.delete(resourceTypeOf(kind), refOf(kind)));
  }

  async #try(write: () => Promise<unknown>): Promise<string> {
    const message = (error: unknown): string => (error instanceof Error ? error.message : String(error));
    return await this.#clock.run(write().then(() => 'done', message));
  }
}

function refOf({ scope }: ResourceKind) {
  return { name: 'one', ...(scope === 'Namespaced' ? { namespace: 'default' } : {}) };
}

/** Each way to change a field: the status before, and a patch. */
const CHANGES = {
  sets: (field: string) => [{}, { [field]: ONE }],
  'sets, where there is no status,': (field: string) => [undefined, { [field]: ONE }],
  'takes away': (field: string) => [{ [field]: ONE }, { [field]: null }],
  changes: (field: string) => [{ [field]: 'one' }, { [field]: 'other' }],
  'changes in the depth of': (field: string) => [{ [field]: ONE }, { [field]: OTHER }],
} as const;

for (const kind of KINDS) {
  test(`only-ipamd-writes-status: each field of a ${kind.kind}'s status that is ipamd's, and nobody else's`, async (t) => {
    const { as, admin, ipamd } = await scene();
    const fields = fieldsOfIpamd(kind);
    t.true(fields.length > 5);
    for (const field of fields)
      for (const [how, change] of Object.entries(CHANGES)) {
        const [status, patch] = change(field);
        const what = `${how} status.${field}`;
        t.is(await ipamd.create(kind, status === undefined ? {} : { status }), 'done');
        for (const user of OTHERS) {
          const told = await as(user).patch(kind, { status: patch });
          const denied = new RegExp(
            `tke-eni-only-ipamd-writes-status.* tke-eni-ipamd alone writes status\\.${field} of ${kind.plural} one; .{30}`,
          );
          t.regex(told, denied, `${user.username} ${what}`);
        }
        t.is(await ipamd.patch(kind, { status: patch }), 'done', what);
        t.is(await admin.delete(kind), 'done');
      }
  });

  test(`only-ipamd-writes-status: what others write of a ${kind.kind} goes through`, async (t) => {
    const { as, admin, ipamd } = await scene();
    const status = Object.fromEntries(fieldsOfIpamd(kind).map((field) => [field, ONE]));
    t.is(await admin.create(kind, { spec: {}, status: { ...status, unknown: 1 } }), 'done', 'a backup is restored');
    for (const user of OTHERS) {
      const writer = as(user);
      const parts: readonly JsonObject[] = [
        { spec: { anything: user.username } },
        { loadBalancers: { registeredIPs: [user.username] } },
        { status: { unknown: user.username } },
        { status: structuredClone(status) },
      ];
      for (const part of parts) t.is(await writer.patch(kind, part), 'done', JSON.stringify(part));
      t.is(await writer.replace(kind, (object) => ({ ...object, spec: { other: user.username } })), 'done');
      const metadata = { labels: { by: 'a' }, annotations: { by: 'a' }, finalizers: ['example.com/held'] };
      t.is(await writer.patch(kind, { metadata }), 'done');
      t.is(await writer.patch(kind, { metadata: { finalizers: null } }), 'done');
    }
    const whole = await admin.replace(kind, ({ status: _, ...rest }) => rest);
    t.regex(whole, /alone writes status\.[^;]*, status\.conditions of/, 'a manifest without a status');
    t.is(await ipamd.replace(kind, ({ status: _, ...rest }) => rest), 'done');
    t.is(await admin.delete(kind), 'done');
  });
}

test('only-ipamd-writes-status: covers each kind that ipamd makes, and none of people', (t) => {
  const rules = at(POLICY, 'spec', 'matchConstraints', 'resourceRules', 0);
  t.deepEqual(
    at(rules, 'resources'),
    KINDS.flatMap(({ plural }) => [plural, `${plural}/status`]),
  );
  const ofPeople = RESOURCE_KINDS.filter(({ plural }) => OF_PEOPLE.includes(plural));
  for (const { plural, fields } of ofPeople) {
    const spec = Object.values(fields['spec']?.value.fields ?? {});
    t.true(
      spec.some(({ owner }) => owner === 'people'),
      plural,
    );
  }
});

test('only-ipamd-writes-status: is about the account that ipamd has', (t) => {
  t.is(at(POLICY, 'spec', 'matchConditions', 0, 'expression'), `request.userInfo.username != '${IPAMD.username}'`);
  t.is(at(BINDING, 'spec', 'policyName'), at(POLICY, 'metadata', 'name'));
});
