import { at, type ContractCase, configMap, failure } from './contract-case.ts';

function names(body: unknown): readonly unknown[] {
  const items = at(body, 'items');
  return Array.isArray(items) ? items.map((one) => at(one, 'metadata', 'name')) : [];
}

/** Lists, selectors and pages. */
export const LIST_CASES: readonly ContractCase[] = [
  {
    title: 'list: is in the order of names, with a kind and a resourceVersion',
    run: async (t, api, ns) => {
      const path = `/api/v1/namespaces/${ns}/configmaps`;
      for (const name of ['zb', 'za', 'zc'])
        await api.call('POST', path, configMap(name, {}, { labels: { mine: 'yes' } }));
      const { body } = await api.call('GET', `${path}?labelSelector=mine%3Dyes`);
      t.is(body['kind'], 'ConfigMapList');
      t.deepEqual(names(body), ['za', 'zb', 'zc']);
      t.regex(String(at(body, 'metadata', 'resourceVersion')), /^\d+$/);
    },
  },
  {
    title: 'list: selects by labels',
    run: async (t, api, ns) => {
      const path = `/api/v1/namespaces/${ns}/configmaps`;
      for (const [name, labels] of Object.entries({ a: { x: '1' }, b: { x: '2' }, c: { y: '1' } })) {
        await api.call('POST', path, configMap(name, {}, { labels: { mine: 'yes', ...labels } }));
      }
      const chosen = async (selector: string) =>
        names((await api.call('GET', `${path}?labelSelector=${encodeURIComponent(`mine,${selector}`)}`)).body).join('');
      t.is(await chosen('x=1'), 'a');
      t.is(await chosen('x==2'), 'b');
      t.is(await chosen('x!=1'), 'bc');
      t.is(await chosen('x in (1, 2)'), 'ab');
      t.is(await chosen('x notin (1)'), 'bc');
      t.is(await chosen('x'), 'ab');
      t.is(await chosen('!x'), 'c');
    },
  },
  {
    title: 'list: selects by the fields of its resource, and no others',
    run: async (t, api, ns) => {
      const path = `/api/v1/namespaces/${ns}/configmaps`;
      await api.call('POST', path, configMap('a'));
      await api.call('POST', path, configMap('b'));
      const one = await api.call('GET', `${path}?fieldSelector=metadata.name%3Db`);
      t.deepEqual(names(one.body), ['b']);
      const wrong = await api.call('GET', `${path}?fieldSelector=spec.nodeName%3Db`);
      t.deepEqual([wrong.status, wrong.body['reason']], [400, 'BadRequest']);
    },
  },
  {
    title: 'list: gives pages of one state',
    run: async (t, api, ns) => {
      const path = `/api/v1/namespaces/${ns}/secrets`;
      for (const name of ['a', 'b', 'c', 'd']) await api.call('POST', path, { metadata: { name } });
      const first = await api.call('GET', `${path}?limit=2`);
      t.deepEqual(names(first.body), ['a', 'b']);
      t.is(at(first.body, 'metadata', 'remainingItemCount'), 2);
      await api.call('DELETE', `${path}/d`);
      await api.call('POST', path, { metadata: { name: 'e' } });
      const token = encodeURIComponent(String(at(first.body, 'metadata', 'continue')));
      const second = await api.call('GET', `${path}?limit=2&continue=${token}`);
      t.deepEqual(names(second.body), ['c', 'd']);
      t.is(at(second.body, 'metadata', 'resourceVersion'), at(first.body, 'metadata', 'resourceVersion'));
      t.is(at(second.body, 'metadata', 'continue') ?? '', '');
    },
  },
  {
    title: 'list: refuses a page of nonsense',
    run: async (t, api, ns) => {
      const answer = await api.call('GET', `/api/v1/namespaces/${ns}/secrets?limit=1&continue=nonsense`);
      t.deepEqual([answer.status, answer.body['reason']], [400, 'BadRequest']);
    },
  },
  {
    title: 'list: waits for no state that is not there yet',
    run: async (t, api, ns) => {
      const answer = await api.call('GET', `/api/v1/namespaces/${ns}/configmaps?resourceVersion=999999999`);
      t.deepEqual(failure(answer).slice(0, 2), [504, 'Timeout']);
      t.regex(String(answer.body['message']), /^Timeout: Too large resource version: 999999999, current: \d+$/);
    },
  },
  {
    title: 'list: comes as a table when asked',
    run: async (t, api, ns) => {
      const path = `/api/v1/namespaces/${ns}/configmaps`;
      await api.call('POST', path, configMap('a', { x: '1', y: '2' }, { labels: { mine: 'yes' } }));
      const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';
      const { body } = await api.call('GET', `${path}?labelSelector=mine`, undefined, { accept });
      t.is(body['kind'], 'Table');
      const columns = at(body, 'columnDefinitions');
      t.deepEqual(Array.isArray(columns) ? columns.map((one) => at(one, 'name')) : [], ['Name', 'Data', 'Age']);
      t.deepEqual([at(body, 'rows', 0, 'cells', 0), at(body, 'rows', 0, 'cells', 1)], ['a', 2]);
      t.is(at(body, 'rows', 0, 'object', 'kind'), 'PartialObjectMetadata');
    },
  },
  {
    title: 'list: comes as metadata alone when asked',
    run: async (t, api, ns) => {
      const path = `/api/v1/namespaces/${ns}/configmaps`;
      await api.call('POST', path, configMap('a', { x: '1' }, { labels: { mine: 'yes' } }));
      const accept = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';
      const { body } = await api.call('GET', `${path}?labelSelector=mine`, undefined, { accept });
      t.is(body['kind'], 'PartialObjectMetadataList');
      t.is(at(body, 'items', 0, 'data'), undefined);
      t.is(at(body, 'items', 0, 'metadata', 'name'), 'a');
    },
  },
];
