import type { Api, ApiAnswer, ApiRequest } from '../api.ts';
import { methodNotAllowed } from '../api-error.ts';
import { create } from './create.ts';
import { remove, removeAll } from './delete.ts';
import { emptyNamespace } from './garbage.ts';
import { get, list } from './list.ts';
import { patch } from './patch.ts';
import { bindPod, evictPod, requestToken, review, scale } from './subresources.ts';
import { finalize, update } from './update.ts';

/** Answers any request but a watch. @throws ApiError */
export function dispatch(api: Api, verb: string, request: ApiRequest): ApiAnswer {
  const { resource, subresource } = request;
  api.onRequest?.(verb, request);
  if (resource.group.startsWith('auth') && resource.kind.endsWith('Review')) return review(api, request);
  if (!resource.verbs.includes(verb)) throw methodNotAllowed();
  const answer = subresource === '' ? onResource(api, verb, request) : onSubresource(api, verb, request);
  if (api.collectsGarbage && (verb === 'delete' || verb === 'update' || verb === 'patch'))
    emptyTerminating(api, request);
  return answer;
}

function onResource(api: Api, verb: string, request: ApiRequest): ApiAnswer {
  switch (verb) {
    case 'get':
      return get(api, request);
    case 'list':
      return list(api, request);
    case 'create':
      if (request.name !== '') throw methodNotAllowed();
      return create(api, request);
    case 'update':
      return update(api, request);
    case 'patch':
      return patch(api, request);
    case 'delete':
      return remove(api, request);
    case 'deletecollection':
      return removeAll(api, request);
    default:
      throw methodNotAllowed();
  }
}

function onSubresource(api: Api, verb: string, request: ApiRequest): ApiAnswer {
  const { subresource } = request;
  if (subresource === 'binding' && verb === 'create') return bindPod(api, request);
  if (subresource === 'eviction' && verb === 'create') return evictPod(api, request);
  if (subresource === 'token' && verb === 'create') return requestToken(api, request);
  if (subresource === 'scale') return scale(api, request, verb);
  if (subresource === 'finalize' && verb === 'update') return finalize(api, request);
  if (subresource !== 'status') throw methodNotAllowed();
  if (verb === 'get') return get(api, request);
  if (verb === 'update') return update(api, request);
  if (verb === 'patch') return patch(api, request);
  throw methodNotAllowed();
}

/** The last object of a namespace that is being deleted takes it along. */
function emptyTerminating(api: Api, { namespace }: ApiRequest): void {
  const found = namespace === undefined ? undefined : api.store.get('/namespaces', `/${namespace}`);
  if (found?.metadata.deletionTimestamp === undefined) return;
  const namespaces = api.registry.find('', 'v1', 'namespaces');
  if (namespaces !== undefined) emptyNamespace(api, namespaces, found.metadata.name);
}
