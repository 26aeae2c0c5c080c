import { at, type ContractCase, configMap, failure, faultsOf, versionOf } from './contract-case.ts';

/** Create, read, update and delete. */
export const OBJECT_CASES: readonly ContractCase[] = [
  {
    title: 'create: gives uid, resourceVersion and creationTimestamp',
    run: async (t, api, ns) => {
      const made = await api.call('POST', `/api/v1/namespaces/${ns}/configmaps`, configMap('a'));
      t.is(made.status, 201);
      t.regex(String(at(made.body, 'metadata', 'uid')), /^[0-9a-f-]{36}$/);
      t.regex(String(at(made.body, 'metadata', 'creationTimestamp')), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
      t.is(at(made.body, 'metadata', 'namespace'), ns);
      t.is(at(made.body, 'metadata', 'generation'), undefined);
      const read = await api.call('GET', `/api/v1/namespaces/${ns}/configmaps/a`);
      t.is(versionOf(read), versionOf(made));
    },
  },
  {
    title: 'create: refuses a name that is there',
    run: async (t, api, ns) => {
      await api.call('POST', `/api/v1/namespaces/${ns}/configmaps`, configMap('a'));
      const again = await api.call('POST', `/api/v1/namespaces/${ns}/configmaps`, configMap('a'));
      t.deepEqual(failure(again), [409, 'AlreadyExists', 'configmaps "a" already exists']);
      t.deepEqual(again.body['details'], { name: 'a', kind: 'configmaps' });
    },
  },
  {
    title: 'create: makes a name from generateName',
    run: async (t, api, ns) => {
      const made = await api.call('POST', `/api/v1/namespaces/${ns}/configmaps`, {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { generateName: 'made-' },
      });
      t.is(made.status, 201);
      t.regex(String(at(made.body, 'metadata', 'name')), /^made-[a-z0-9]{5}$/);
    },
  },
  {
    title: 'create: refuses what has no name, or a bad one',
    run: async (t, api, ns) => {
      const nameless = await api.call('POST', `/api/v1/namespaces/${ns}/configmaps`, { metadata: {} });
      t.deepEqual(faultsOf(nameless), [422, 'Invalid', ['metadata.name FieldValueRequired']]);
      const upper = await api.call('POST', `/api/v1/namespaces/${ns}/configmaps`, configMap('Upper'));
      t.deepEqual(faultsOf(upper), [422, 'Invalid', ['metadata.name FieldValueInvalid']]);
    },
  },
  {
    title: 'create: refuses another namespace than that of the path, and one that is not there',
    run: async (t, api, ns) => {
      const other = await api.call(
        'POST',
        `/api/v1/namespaces/${ns}/configmaps`,
        configMap('a', {}, { namespace: 'other' }),
      );
      t.deepEqual(failure(other), [
        400,
        'BadRequest',
        'the namespace of the provided object does not match the namespace sent on the request',
      ]);
      const nowhere = await api.call('POST', '/api/v1/namespaces/nowhere/configmaps', configMap('a'));
      t.deepEqual(failure(nowhere), [404, 'NotFound', 'namespaces "nowhere" not found']);
    },
  },
  {
    title: 'create: refuses an object of another version or kind',
    run: async (t, api, ns) => {
      const wrong = await api.call('POST', `/api/v1/namespaces/${ns}/configmaps`, {
        ...configMap('a'),
        kind: 'Secret',
      });
      t.deepEqual([wrong.status, wrong.body['reason']], [400, 'BadRequest']);
    },
  },
  {
    title: 'create: leaves no trace with dryRun',
    run: async (t, api, ns) => {
      const made = await api.call('POST', `/api/v1/namespaces/${ns}/configmaps?dryRun=All`, configMap('a'));
      t.is(made.status, 201);
      t.is((await api.call('GET', `/api/v1/namespaces/${ns}/configmaps/a`)).status, 404);
    },
  },
  {
    title: 'get: says what is not there',
    run: async (t, api, ns) => {
      const missing = await api.call('GET', `/api/v1/namespaces/${ns}/configmaps/a`);
      t.deepEqual(failure(missing), [404, 'NotFound', 'configmaps "a" not found']);
      const grouped = await api.call('GET', `/apis/apps/v1/namespaces/${ns}/deployments/a`);
      t.deepEqual(failure(grouped), [404, 'NotFound', 'deployments.apps "a" not found']);
      t.deepEqual(grouped.body['details'], { name: 'a', group: 'apps', kind: 'deployments' });
    },
  },
  {
    title: 'get: answers paths of no resource with a Status, of no group in plain text',
    run: async (t, api) => {
      const answer = await api.call('GET', '/apis/apps/v1/nonsense');
      t.deepEqual(failure(answer), [404, 'NotFound', 'the server could not find the requested resource']);
      const nowhere = await api.call('GET', '/apis/no.such.group/v1/things');
      t.deepEqual([nowhere.status, nowhere.body['text']], [404, '404 page not found\n']);
    },
  },
  {
    title: 'update: refuses a stale resourceVersion',
    run: async (t, api, ns) => {
      const path = `/api/v1/namespaces/${ns}/configmaps/a`;
      const first = await api.call('POST', `/api/v1/namespaces/${ns}/configmaps`, configMap('a'));
      const second = await api.call('PUT', path, { ...first.body, data: { a: '2' } });
      t.is(second.status, 200);
      t.not(versionOf(second), versionOf(first));
      const stale = await api.call('PUT', path, { ...first.body, data: { a: '3' } });
      t.deepEqual(failure(stale), [
        409,
        'Conflict',
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again',
      ]);
    },
  },
  {
    title: 'update: takes no resourceVersion as any, where the resource allows it',
    run: async (t, api, ns) => {
      await api.call('POST', `/api/v1/namespaces/${ns}/configmaps`, configMap('a'));
      const written = await api.call('PUT', `/api/v1/namespaces/${ns}/configmaps/a`, configMap('a', { a: '9' }));
      t.deepEqual([written.status, at(written.body, 'data', 'a')], [200, '9']);
    },
  },
  {
    title: 'update: changes no resourceVersion when nothing changed',
    run: async (t, api, ns) => {
      const made = await api.call('POST', `/api/v1/namespaces/${ns}/configmaps`, configMap('a'));
      const same = await api.call('PUT', `/api/v1/namespaces/${ns}/configmaps/a`, made.body);
      t.is(versionOf(same), versionOf(made));
    },
  },
  {
    title: 'update: keeps uid and creationTimestamp, and refuses another uid',
    run: async (t, api, ns) => {
      const path = `/api/v1/namespaces/${ns}/configmaps/a`;
      const made = await api.call('POST', `/api/v1/namespaces/${ns}/configmaps`, configMap('a'));
      const written = await api.call(
        'PUT',
        path,
        configMap('a', { b: '1' }, { creationTimestamp: '2001-01-01T00:00:00Z' }),
      );
      t.is(at(written.body, 'metadata', 'creationTimestamp'), at(made.body, 'metadata', 'creationTimestamp'));
      t.is(at(written.body, 'metadata', 'uid'), at(made.body, 'metadata', 'uid'));
      const other = await api.call('PUT', path, configMap('a', {}, { uid: '11111111-1111-1111-1111-111111111111' }));
      t.deepEqual([other.status, other.body['reason']], [409, 'Conflict']);
    },
  },
  {
    title: 'update: refuses another name than that of the path, and what is not there',
    run: async (t, api, ns) => {
      const other = await api.call('PUT', `/api/v1/namespaces/${ns}/configmaps/a`, configMap('b'));
      t.deepEqual(failure(other), [
        400,
        'BadRequest',
        'the name of the object (b) does not match the name on the URL (a)',
      ]);
      const missing = await api.call('PUT', `/api/v1/namespaces/${ns}/configmaps/a`, configMap('a'));
      t.deepEqual([missing.status, missing.body['reason']], [404, 'NotFound']);
    },
  },
  {
    title: 'update: creates a Lease that is not there',
    run: async (t, api, ns) => {
      const lease = {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name: 'a' },
        spec: { holderIdentity: 'x' },
      };
      const made = await api.call('PUT', `/apis/coordination.k8s.io/v1/namespaces/${ns}/leases/a`, lease);
      t.is(made.status, 201);
    },
  },
  {
    title: 'delete: answers with a Status, and 404 the second time',
    run: async (t, api, ns) => {
      const made = await api.call('POST', `/api/v1/namespaces/${ns}/configmaps`, configMap('a'));
      const gone = await api.call('DELETE', `/api/v1/namespaces/${ns}/configmaps/a`);
      t.deepEqual([gone.status, gone.body['kind'], gone.body['status']], [200, 'Status', 'Success']);
      t.deepEqual(gone.body['details'], { name: 'a', kind: 'configmaps', uid: at(made.body, 'metadata', 'uid') });
      t.is((await api.call('DELETE', `/api/v1/namespaces/${ns}/configmaps/a`)).status, 404);
    },
  },
  {
    title: 'delete: honours preconditions',
    run: async (t, api, ns) => {
      const path = `/api/v1/namespaces/${ns}/configmaps/a`;
      const made = await api.call('POST', `/api/v1/namespaces/${ns}/configmaps`, configMap('a'));
      const options = (preconditions: object) => ({ apiVersion: 'v1', kind: 'DeleteOptions', preconditions });
      const other = await api.call('DELETE', path, options({ uid: 'x' }));
      t.deepEqual([other.status, other.body['reason']], [409, 'Conflict']);
      const stale = await api.call('DELETE', path, options({ resourceVersion: '1' }));
      t.deepEqual([stale.status, stale.body['reason']], [409, 'Conflict']);
      const right = { uid: at(made.body, 'metadata', 'uid'), resourceVersion: versionOf(made) };
      t.is((await api.call('DELETE', path, options(right))).status, 200);
    },
  },
  {
    title: 'delete: waits for finalizers, takes no new ones meanwhile',
    run: async (t, api, ns) => {
      const path = `/api/v1/namespaces/${ns}/configmaps/a`;
      await api.call(
        'POST',
        `/api/v1/namespaces/${ns}/configmaps`,
        configMap('a', {}, { finalizers: ['example.io/one'] }),
      );
      const marked = await api.call('DELETE', path);
      t.is(marked.status, 200);
      t.is(marked.body['kind'], 'ConfigMap');
      t.truthy(at(marked.body, 'metadata', 'deletionTimestamp'));
      t.is(at(marked.body, 'metadata', 'deletionGracePeriodSeconds'), 0);
      const more = await api.call(
        'PATCH',
        path,
        { metadata: { finalizers: ['example.io/one', 'example.io/two'] } },
        MERGE,
      );
      t.deepEqual(faultsOf(more), [422, 'Invalid', ['metadata.finalizers FieldValueForbidden']]);
      const freed = await api.call('PATCH', path, { metadata: { finalizers: null } }, MERGE);
      t.is(freed.status, 200);
      t.is((await api.call('GET', path)).status, 404);
    },
  },
  {
    title: 'requests: that make no sense are refused in the same words',
    run: async (t, api, ns) => {
      const maps = `/api/v1/namespaces/${ns}/configmaps`;
      await api.call('POST', maps, configMap('a'));
      const refused = async (method: string, path: string, body?: unknown) =>
        failure(await api.call(method, path, body));
      t.deepEqual(await refused('POST', maps, configMap('b', {}, { resourceVersion: '5' })), [
        500,
        undefined,
        'resourceVersion should not be set on objects to be created',
      ]);
      t.deepEqual(await refused('POST', `${maps}/a`, {}), [
        405,
        'MethodNotAllowed',
        'the server does not allow this method on the requested resource',
      ]);
      t.deepEqual(await refused('PUT', `${maps}/a`, { metadata: {} }), [
        400,
        'BadRequest',
        'the name of the object (a based on URL) was undeterminable: name must be provided',
      ]);
      t.deepEqual((await refused('PUT', `${maps}/a`, configMap('a', {}, { uid: 'u' }))).slice(0, 2), [409, 'Conflict']);
      t.deepEqual((await refused('POST', maps, '{"kind":')).slice(0, 2), [400, 'BadRequest']);
      t.deepEqual(faultsOf(await api.call('POST', maps, configMap('k', { 'a/b': '1' }))), [
        422,
        'Invalid',
        ['data[a/b] FieldValueInvalid'],
      ]);
      t.deepEqual(await refused('GET', `${maps}?fieldSelector=spec.x%3D1`), [
        400,
        'BadRequest',
        '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"',
      ]);
      t.deepEqual(await refused('GET', '/api/v1/pods?fieldSelector=spec.x%3D1'), [
        400,
        'BadRequest',
        'field label not supported: spec.x',
      ]);
      t.deepEqual(faultsOf(await api.call('GET', `${maps}?resourceVersionMatch=Exact`)), [
        422,
        'Invalid',
        ['resourceVersionMatch FieldValueForbidden'],
      ]);
      // 1.32 answers a list as it does a watch.
      t.true([400, 500].includes((await api.call('GET', `${maps}?resourceVersion=abc`)).status));
      t.is((await api.call('GET', `${maps}?watch=1&resourceVersion=abc`)).status, 500);
      t.is((await api.call('GET', `${maps}?labelSelector=a%3D%3D%3D`)).status, 400);
    },
  },
  {
    title: 'deletecollection: deletes what the selector says',
    run: async (t, api, ns) => {
      const path = `/api/v1/namespaces/${ns}/configmaps`;
      for (const name of ['a', 'b', 'c'])
        await api.call('POST', path, configMap(name, {}, { labels: { half: name === 'c' ? 'no' : 'yes' } }));
      t.is((await api.call('DELETE', `${path}?labelSelector=half%3Dyes`)).status, 200);
      t.is((await api.call('GET', `${path}/a`)).status, 404);
      t.is((await api.call('GET', `${path}/c`)).status, 200);
    },
  },
];

const MERGE = { contentType: 'application/merge-patch+json' };
