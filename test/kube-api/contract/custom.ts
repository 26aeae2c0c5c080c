import { customResourceDefinition } from '../../../crd/custom-resource-definition.ts';
import { RESOURCE_KINDS } from '../../../crd/kinds.ts';
import type { Answer, ContractClient } from './client.ts';
import { at, type ContractCase, failure, faultsOf, versionOf } from './contract-case.ts';

const MERGE = { contentType: 'application/merge-patch+json' };
const GROUP = '/apis/networking.tke.cloud.tencent.com/v1';
const NECS = `${GROUP}/nodeeniconfigs`;
const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const HEAD = { apiVersion: 'networking.tke.cloud.tencent.com/v1', kind: 'NodeENIConfig' };

function eni(eniID: string, more: object = {}) {
  return { eniID, mac: '20:90:6f:00:00:01', state: 'Attached', ...more };
}

function nec(name: string, spec: object, status: object = {}) {
  return { ...HEAD, metadata: { name }, spec, status };
}

/** Defines all our kinds and waits until they are served. Idempotent. */
async function define(api: ContractClient): Promise<void> {
  for (const kind of RESOURCE_KINDS) {
    await api.call('POST', DEFINITIONS, customResourceDefinition(kind));
    for (let tries = 0; tries < 100; tries++) {
      const scope = kind.scope === 'Cluster' ? '' : 'namespaces/default/';
      if ((await api.call('GET', `${GROUP}/${scope}${kind.plural}`)).status === 200) break;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

/** Custom resources, by our own definitions. */
export const CUSTOM_CASES: readonly ContractCase[] = [
  {
    title: 'definitions: of all our kinds are established',
    run: async (t, api) => {
      await define(api);
      for (const kind of RESOURCE_KINDS) {
        const { body } = await api.call('GET', `${DEFINITIONS}/${kind.plural}.networking.tke.cloud.tencent.com`);
        const conditions = at(body, 'status', 'conditions');
        const held = Array.isArray(conditions)
          ? conditions.filter((one) => at(one, 'status') === 'True').map((one) => at(one, 'type'))
          : [];
        t.deepEqual(held.sort(), ['Established', 'NamesAccepted'], kind.kind);
      }
    },
  },
  {
    title: 'definitions: must be structural and named after their resource',
    run: async (t, api) => {
      const spec = {
        group: 'example.io',
        scope: 'Cluster',
        names: { plural: 'things', singular: 'thing', kind: 'Thing', listKind: 'ThingList' },
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            schema: { openAPIV3Schema: { type: 'object', properties: { a: {} } } },
          },
        ],
      };
      const head = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' };
      const untyped = await api.call('POST', DEFINITIONS, { ...head, metadata: { name: 'things.example.io' }, spec });
      t.deepEqual(faultsOf(untyped), [
        422,
        'Invalid',
        ['spec.validation.openAPIV3Schema.properties[a].type FieldValueRequired'],
      ]);
      const misnamed = await api.call('POST', DEFINITIONS, { ...head, metadata: { name: 'other.example.io' }, spec });
      t.is(misnamed.status, 422);
    },
  },
  {
    title: 'custom resources: count every change but metadata in their generation',
    run: async (t, api, ns) => {
      await define(api);
      const made = await api.call('POST', NECS, nec(ns, { desiredRouteENIIP: 3 }, { supplyEpoch: 1 }));
      t.is(made.status, 201);
      t.is(at(made.body, 'status', 'supplyEpoch'), 1);
      t.is(at(made.body, 'metadata', 'generation'), 1);
      const labelled = await api.call('PATCH', `${NECS}/${ns}`, { metadata: { labels: { a: 'b' } } }, MERGE);
      t.is(at(labelled.body, 'metadata', 'generation'), 1);
      const grown = await api.call('PATCH', `${NECS}/${ns}`, { status: { supplyEpoch: 2 } }, MERGE);
      t.is(at(grown.body, 'metadata', 'generation'), 2);
      t.is((await api.call('PATCH', `${NECS}/${ns}/status`, {}, MERGE)).status, 404);
    },
  },
  {
    title: 'custom resources: name every fault of an object',
    run: async (t, api, ns) => {
      await define(api);
      const broken = nec(
        ns,
        { desiredRouteENIIP: -1, maxRouteENI: '3', enableQuickRelease: true },
        {
          eniInfos: [
            { eniID: 'eni-1', mac: 'nonsense', state: 'attached', primaryIP: '10.0.0.256', subnetCIDR: '10.0.0.0/33' },
          ],
        },
      );
      const answer = await api.call('POST', NECS, broken);
      t.deepEqual(faultsOf(answer), [
        422,
        'Invalid',
        [
          // Rules are not asked of what has not the right form; that is said too.
          '<nil> FieldValueInvalid',
          'spec.desiredRouteENIIP FieldValueInvalid',
          'spec.maxRouteENI FieldValueTypeInvalid',
          'status.eniInfos[0].mac FieldValueInvalid',
          'status.eniInfos[0].primaryIP FieldValueTypeInvalid',
          'status.eniInfos[0].state FieldValueNotSupported',
          'status.eniInfos[0].subnetCIDR FieldValueTypeInvalid',
        ],
      ]);
      const missing = await api.call('POST', NECS, nec(ns, {}, { eniInfos: [{ eniID: 'eni-1' }] }));
      t.deepEqual(faultsOf(missing), [
        422,
        'Invalid',
        [
          '<nil> FieldValueInvalid',
          'status.eniInfos[0].mac FieldValueRequired',
          'status.eniInfos[0].state FieldValueRequired',
        ],
      ]);
    },
  },
  {
    title: 'custom resources: refuse two items of one key',
    run: async (t, api, ns) => {
      await define(api);
      const answer = await api.call('POST', NECS, nec(ns, {}, { eniInfos: [eni('eni-1'), eni('eni-1')] }));
      t.deepEqual(faultsOf(answer), [422, 'Invalid', ['status.eniInfos[1] FieldValueDuplicate']]);
    },
  },
  {
    title: 'custom resources: are checked by CEL rules, also against what was there',
    run: async (t, api, ns) => {
      await define(api);
      const crossed = await api.call('POST', NECS, nec(ns, { routeENIIPMinWarmTarget: 6, routeENIIPMaxWarmTarget: 5 }));
      t.deepEqual(faultsOf(crossed), [422, 'Invalid', ['spec FieldValueInvalid']]);
      t.regex(String(crossed.body['message']), /routeENIIPMinWarmTarget must not be above routeENIIPMaxWarmTarget/);
      await api.call('POST', NECS, nec(ns, {}, { supplyEpoch: 5 }));
      const shrunk = await api.call('PATCH', `${NECS}/${ns}`, { status: { supplyEpoch: 4 } }, MERGE);
      t.deepEqual(faultsOf(shrunk), [422, 'Invalid', ['status.supplyEpoch FieldValueInvalid']]);
      t.is((await api.call('PATCH', `${NECS}/${ns}`, { status: { supplyEpoch: 6 } }, MERGE)).status, 200);
    },
  },
  {
    title: 'custom resources: lose fields that the schema does not have, or refuse them',
    run: async (t, api, ns) => {
      await define(api);
      const misspelt = nec(ns, { maxRouteEni: 3, maxIPPerENI: 9 });
      const strict = await api.call('POST', `${NECS}?fieldValidation=Strict`, misspelt);
      t.deepEqual([strict.status, strict.body['reason']], [400, 'BadRequest']);
      t.regex(String(strict.body['message']), /unknown field "spec.maxRouteEni"/);
      const made = await api.call('POST', NECS, misspelt);
      t.deepEqual(made.body['spec'], { maxIPPerENI: 9 });
      t.regex(String(made.headers['warning']), /unknown field/);
    },
  },
  {
    title: 'custom resources: lose nulls, but not those in lists',
    run: async (t, api, ns) => {
      await define(api);
      const made = await api.call('POST', NECS, nec(ns, {}, { zone: null, eniInfos: null, supplyEpoch: 1 }));
      t.deepEqual([made.status, made.body['status']], [201, { supplyEpoch: 1 }]);
      const listed = await api.call('POST', NECS, nec(`${ns}-b`, {}, { eniInfos: [null] }));
      t.is(listed.status, 422);
    },
  },
  {
    title: 'custom resources: must be updated with a resourceVersion',
    run: async (t, api, ns) => {
      await define(api);
      const made = await api.call('POST', NECS, nec(ns, { maxRouteENI: 1 }));
      const unguarded = await api.call('PUT', `${NECS}/${ns}`, nec(ns, { maxRouteENI: 2 }));
      t.deepEqual(faultsOf(unguarded), [422, 'Invalid', ['metadata.resourceVersion FieldValueInvalid']]);
      const first = await api.call('PUT', `${NECS}/${ns}`, { ...made.body, spec: { maxRouteENI: 2 } });
      t.is(first.status, 200);
      const stale = await api.call('PUT', `${NECS}/${ns}`, { ...made.body, spec: { maxRouteENI: 3 } });
      t.deepEqual([stale.status, stale.body['reason']], [409, 'Conflict']);
      t.is(versionOf(await api.call('GET', `${NECS}/${ns}`)), versionOf(first));
    },
  },
  {
    title: 'custom resources: take no strategic merge patch',
    run: async (t, api, ns) => {
      await define(api);
      await api.call('POST', NECS, nec(ns, {}));
      const answer = await api.call(
        'PATCH',
        `${NECS}/${ns}`,
        {},
        { contentType: 'application/strategic-merge-patch+json' },
      );
      t.deepEqual([answer.status, answer.body['reason']], [415, 'UnsupportedMediaType']);
    },
  },
  {
    title: 'custom resources: merge lists by their keys in server-side apply',
    run: async (t, api, ns) => {
      await define(api);
      const apply = (manager: string, id: string) => {
        const object = { ...HEAD, metadata: { name: ns }, status: { eniInfos: [eni(id)] } };
        return api.call('PATCH', `${NECS}/${ns}?fieldManager=${manager}`, object, {
          contentType: 'application/apply-patch+yaml',
        });
      };
      await apply('one', 'eni-1');
      const both = await apply('two', 'eni-2');
      const ids = at(both.body, 'status', 'eniInfos');
      t.deepEqual(Array.isArray(ids) ? ids.map((one) => at(one, 'eniID')) : [], ['eni-1', 'eni-2']);
    },
  },
  {
    title: 'custom resources: come as a table with their own columns',
    run: async (t, api, ns) => {
      await define(api);
      const conditions = [
        { type: 'Ready', status: 'True', reason: 'Warm', lastTransitionTime: '2026-01-01T00:00:00Z' },
      ];
      await api.call('POST', NECS, nec(ns, { desiredRouteENIIP: 7 }, { routeENIIPs: 9, conditions }));
      const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';
      const { body } = await api.call('GET', `${NECS}/${ns}`, undefined, { accept });
      const columns = at(body, 'columnDefinitions');
      t.deepEqual(
        Array.isArray(columns) ? columns.map((one) => `${String(at(one, 'name'))} ${String(at(one, 'priority'))}`) : [],
        [
          ...['Name 0', 'ENIs 0', 'IPs 0', 'Desired 0', 'Allocatable 0', 'Ready 0', 'Reason 0'],
          ...['Max-ENIs 1', 'IPs-per-ENI 1', 'Instance 1', 'Type 1', 'Zone 1', 'Epoch 1', 'Call 1', 'Age 0'],
        ],
      );
      const cells = at(body, 'rows', 0, 'cells');
      t.deepEqual(Array.isArray(cells) ? cells.slice(0, 7) : [], [ns, null, 9, 7, null, 'True', 'Warm']);
    },
  },
  {
    title: 'definitions: wait for objects with finalizers, and take no new ones meanwhile',
    run: async (t, api) => {
      const kind = { plural: 'helds', singular: 'held', kind: 'Held', listKind: 'HeldList' };
      const schema = { openAPIV3Schema: { type: 'object' } };
      const versions = [{ name: 'v1', served: true, storage: true, schema }];
      const spec = { group: 'example.io', scope: 'Cluster', names: kind, versions };
      const metadata = { name: 'helds.example.io' };
      const definition = `${DEFINITIONS}/${metadata.name}`;
      const helds = '/apis/example.io/v1/helds';
      const held = (name: string, finalizers: readonly string[]) => {
        return { apiVersion: 'example.io/v1', kind: 'Held', metadata: { name, finalizers } };
      };
      const until = async (path: string, holds: (answer: Answer) => boolean): Promise<Answer> => {
        let answer = await api.call('GET', path);
        for (let tries = 0; tries < 100 && !holds(answer); tries++) {
          await new Promise((resolve) => setTimeout(resolve, 100));
          answer = await api.call('GET', path);
        }
        return answer;
      };
      const head = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' };
      t.is((await api.call('POST', DEFINITIONS, { ...head, metadata, spec })).status, 201);
      await until(helds, ({ status }) => status === 200);
      t.is((await api.call('POST', helds, held('free', []))).status, 201);
      t.is((await api.call('POST', helds, held('kept', ['example.io/one']))).status, 201);
      t.is((await api.call('DELETE', definition)).status, 200);
      t.is((await until(`${helds}/free`, ({ status }) => status === 404)).status, 404);
      const marked = await until(
        `${helds}/kept`,
        ({ body }) => at(body, 'metadata', 'deletionTimestamp') !== undefined,
      );
      t.truthy(at(marked.body, 'metadata', 'deletionTimestamp'));
      t.truthy(at((await api.call('GET', definition)).body, 'metadata', 'deletionTimestamp'));
      t.is((await api.call('POST', helds, held('late', []))).status, 405);
      t.is((await api.call('PATCH', `${helds}/kept`, { metadata: { finalizers: null } }, MERGE)).status, 200);
      t.is((await until(definition, ({ status }) => status === 404)).status, 404);
    },
  },
  {
    title: 'custom resources: are not there before their definition',
    run: async (t, api) => {
      const answer = await api.call('GET', '/apis/example.io/v1/nothings');
      t.is(answer.status, 404);
    },
  },
  {
    title: 'custom resources: say what is not there by their full name',
    run: async (t, api) => {
      await define(api);
      t.deepEqual(failure(await api.call('GET', `${NECS}/absent`)), [
        404,
        'NotFound',
        'nodeeniconfigs.networking.tke.cloud.tencent.com "absent" not found',
      ]);
    },
  },
];
