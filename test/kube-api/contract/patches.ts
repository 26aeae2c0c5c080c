import { at, type ContractCase, configMap, failure, faultsOf, versionOf } from './contract-case.ts';

const JSON_PATCH = { contentType: 'application/json-patch+json' };
const MERGE = { contentType: 'application/merge-patch+json' };
const STRATEGIC = { contentType: 'application/strategic-merge-patch+json' };
const APPLY = { contentType: 'application/apply-patch+yaml' };

function node(name: string) {
  return { apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { keep: 'me' } } };
}

/** The four kinds of patch. */
export const PATCH_CASES: readonly ContractCase[] = [
  {
    title: 'patch: merges, and null takes away',
    run: async (t, api, ns) => {
      await api.call('POST', `/api/v1/namespaces/${ns}/configmaps`, configMap('a', { a: '1', b: '2' }));
      const done = await api.call(
        'PATCH',
        `/api/v1/namespaces/${ns}/configmaps/a`,
        { data: { a: null, c: '3' } },
        MERGE,
      );
      t.deepEqual([done.status, done.body['data']], [200, { b: '2', c: '3' }]);
    },
  },
  {
    title: 'patch: runs JSON patches, and refuses those that do not fit',
    run: async (t, api, ns) => {
      const path = `/api/v1/namespaces/${ns}/configmaps/a`;
      await api.call(
        'POST',
        `/api/v1/namespaces/${ns}/configmaps`,
        configMap('a', {}, { annotations: { 'x/y': '1' } }),
      );
      const patch = [
        { op: 'test', path: '/metadata/annotations/x~1y', value: '1' },
        { op: 'replace', path: '/metadata/annotations/x~1y', value: '2' },
        { op: 'add', path: '/metadata/labels', value: { a: 'b' } },
      ];
      const done = await api.call('PATCH', path, patch, JSON_PATCH);
      t.is(done.status, 200);
      t.like(done.body['metadata'], { annotations: { 'x/y': '2' }, labels: { a: 'b' } });
      const rejected = [422, 'Invalid', 'the server rejected our request due to an error in our request'];
      t.deepEqual(failure(await api.call('PATCH', path, patch, JSON_PATCH)), rejected);
      const removal = [{ op: 'remove', path: '/data/absent' }];
      t.deepEqual(failure(await api.call('PATCH', path, removal, JSON_PATCH)), rejected);
      t.deepEqual(failure(await api.call('PATCH', path, [{ op: 'spin', path: '/data' }], JSON_PATCH)), rejected);
      t.is((await api.call('PATCH', path, { op: 'add' }, JSON_PATCH)).status, 400);
      t.is((await api.call('PATCH', path, [1], MERGE)).status, 400);
      t.is((await api.call('PATCH', path, { metadata: { name: 'b' } }, MERGE)).status, 400);
    },
  },
  {
    title: 'patch: is guarded by a resourceVersion that it carries',
    run: async (t, api, ns) => {
      const path = `/api/v1/namespaces/${ns}/configmaps/a`;
      const made = await api.call('POST', `/api/v1/namespaces/${ns}/configmaps`, configMap('a'));
      const patch = { metadata: { resourceVersion: versionOf(made) }, data: { a: '2' } };
      t.is((await api.call('PATCH', path, patch, MERGE)).status, 200);
      const stale = await api.call('PATCH', path, { ...patch, data: { a: '3' } }, MERGE);
      t.deepEqual([stale.status, stale.body['reason']], [409, 'Conflict']);
    },
  },
  {
    title: 'patch: merges lists of built-in resources by their keys',
    run: async (t, api, ns) => {
      const name = `node-${ns}`;
      await api.call('POST', '/api/v1/nodes', node(name));
      const taint = (key: string, effect = 'NoSchedule') => ({ spec: { taints: [{ key, effect, value: 'true' }] } });
      await api.call('PATCH', `/api/v1/nodes/${name}/status`, status('A', 'True'), STRATEGIC);
      await api.call('PATCH', `/api/v1/nodes/${name}/status`, status('B', 'False'), STRATEGIC);
      const both = await api.call('PATCH', `/api/v1/nodes/${name}/status`, status('A', 'False'), STRATEGIC);
      t.is(both.status, 200);
      const conditions = at(both.body, 'status', 'conditions');
      t.deepEqual(
        Array.isArray(conditions)
          ? conditions.map((one) => `${String(at(one, 'type'))}=${String(at(one, 'status'))}`).sort()
          : [],
        ['A=False', 'B=False'],
      );
      const deleted = { status: { conditions: [{ $patch: 'delete', type: 'A' }] } };
      const left = await api.call('PATCH', `/api/v1/nodes/${name}/status`, deleted, STRATEGIC);
      t.deepEqual(typesOf(left.body), ['B']);
      // Taints have no key by which they would merge: the new list is the list.
      await api.call('PATCH', `/api/v1/nodes/${name}`, taint('one'), STRATEGIC);
      const replaced = await api.call('PATCH', `/api/v1/nodes/${name}`, taint('two'), STRATEGIC);
      t.deepEqual(at(replaced.body, 'spec', 'taints'), [{ key: 'two', effect: 'NoSchedule', value: 'true' }]);
      t.is(at(left.body, 'metadata', 'labels', 'keep'), 'me');
      await api.call('DELETE', `/api/v1/nodes/${name}`);
    },
  },
  {
    title: 'patch: refuses an unknown form',
    run: async (t, api, ns) => {
      await api.call('POST', `/api/v1/namespaces/${ns}/configmaps`, configMap('a'));
      const answer = await api.call(
        'PATCH',
        `/api/v1/namespaces/${ns}/configmaps/a`,
        {},
        { contentType: 'application/json' },
      );
      t.deepEqual([answer.status, answer.body['reason']], [415, 'UnsupportedMediaType']);
    },
  },
  {
    title: 'apply: creates, changes its own fields, takes away what it no longer says',
    run: async (t, api, ns) => {
      const path = `/api/v1/namespaces/${ns}/configmaps/a?fieldManager=one`;
      const made = await api.call('PATCH', path, configMap('a', { a: '1', b: '2' }), APPLY);
      t.is(made.status, 201);
      const done = await api.call('PATCH', path, configMap('a', { a: '9' }), APPLY);
      t.deepEqual([done.status, done.body['data']], [200, { a: '9' }]);
      const same = await api.call('PATCH', path, configMap('a', { a: '9' }), APPLY);
      t.is(versionOf(same), versionOf(done));
    },
  },
  {
    title: 'apply: refuses to change what another manager owns, unless forced',
    run: async (t, api, ns) => {
      const path = `/api/v1/namespaces/${ns}/configmaps/a`;
      await api.call('PATCH', `${path}?fieldManager=one`, configMap('a', { a: '1' }), APPLY);
      const conflict = await api.call('PATCH', `${path}?fieldManager=two`, configMap('a', { a: '2', b: '2' }), APPLY);
      t.deepEqual(failure(conflict), [409, 'Conflict', 'Apply failed with 1 conflict: conflict with "one": .data.a']);
      t.deepEqual(at(conflict.body, 'details', 'causes'), [
        { reason: 'FieldManagerConflict', message: 'conflict with "one"', field: '.data.a' },
      ]);
      const forced = await api.call(
        'PATCH',
        `${path}?fieldManager=two&force=true`,
        configMap('a', { a: '2', b: '2' }),
        APPLY,
      );
      t.deepEqual([forced.status, forced.body['data']], [200, { a: '2', b: '2' }]);
      // One owns nothing any more: what it no longer says stays.
      const first = await api.call('PATCH', `${path}?fieldManager=one`, configMap('a', { c: '3' }), APPLY);
      t.deepEqual(first.body['data'], { a: '2', b: '2', c: '3' });
    },
  },
  {
    title: 'apply: wants a field manager',
    run: async (t, api, ns) => {
      const answer = await api.call('PATCH', `/api/v1/namespaces/${ns}/configmaps/a`, configMap('a'), APPLY);
      t.deepEqual(faultsOf(answer), [422, 'Invalid', ['fieldManager FieldValueRequired']]);
    },
  },
];

function typesOf(node: unknown): readonly unknown[] {
  const conditions = at(node, 'status', 'conditions');
  return Array.isArray(conditions) ? conditions.map((one) => at(one, 'type')).sort() : [];
}

function status(type: string, value: string) {
  return { status: { conditions: [{ type, status: value, reason: 'Test', message: '' }] } };
}
