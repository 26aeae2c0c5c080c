import type { Api, ApiAnswer, ApiRequest } from '../api.ts';
import { badRequest, expired, invalidOptions, notFound } from '../api-error.ts';
import type { KubeObject } from '../object.ts';
import { groupVersion, storageKey } from '../resources/api-resource.ts';
import { forbiddenValue } from '../resources/causes.ts';
import { selectableFields } from '../resources/selectable-fields.ts';
import { parseFieldSelector, parseLabelSelector, type Selector } from '../selector.ts';
import { keyOf, tooLarge } from '../store.ts';
import { findOrThrow } from './update.ts';

/** Answers a GET of one object. @throws ApiError NotFound */
export function get(api: Api, request: ApiRequest): ApiAnswer {
  const at = staleRevision(api, request);
  if (at === undefined) return { status: 200, body: findOrThrow(api, request) };
  const { resource, namespace, name } = request;
  const then = api.store.listAt(storageKey(resource), resource.namespaced ? namespace : undefined, at);
  const body = then.find(({ metadata }) => metadata.name === name);
  if (body === undefined) throw notFound(resource, name);
  return { status: 200, body };
}

/** Makes the selector of a request: labels, fields and the name in its path. @throws ApiError BadRequest */
export function selectorOf({ query, resource, name }: ApiRequest): Selector {
  const byLabel = parseLabelSelector(query.get('labelSelector') ?? '');
  const byField = parseFieldSelector(
    query.get('fieldSelector') ?? '',
    selectableFields(storageKey(resource), resource.schema !== undefined),
  );
  return (object) => (name === '' || object.metadata.name === name) && byLabel(object) && byField(object);
}

/** Returns the objects that a request selects, as they are now. */
export function listObjects(api: Api, request: ApiRequest): readonly KubeObject[] {
  const { resource, namespace } = request;
  return api.store.list(storageKey(resource), resource.namespaced ? namespace : undefined).filter(selectorOf(request));
}

type Continue = { readonly revision: number; readonly after: string };

/** Answers a GET of a collection, in pages when asked. @throws ApiError Expired, BadRequest, Timeout */
export function list(api: Api, request: ApiRequest): ApiAnswer {
  const { resource, query, namespace } = request;
  const token = readContinue(query.get('continue') ?? '');
  const exact = exactRevision(api, request);
  const at = token?.revision ?? exact ?? staleRevision(api, request);
  const key = storageKey(resource);
  const scope = resource.namespaced ? namespace : undefined;
  const all = at === undefined ? api.store.list(key, scope) : api.store.listAt(key, scope, at);
  const selects = selectorOf(request);
  const rest = all.filter((object) => (token === undefined || keyOf(object) > token.after) && selects(object));
  const limit = Number(query.get('limit') ?? 0);
  const page = limit > 0 ? rest.slice(0, limit) : rest;
  const revision = at ?? api.store.revision;
  const last = page.at(-1);
  const isCut = page.length < rest.length && last !== undefined;
  const remaining = rest.length - page.length;
  const isCounted = !query.get('labelSelector') && !query.get('fieldSelector');
  const metadata = {
    resourceVersion: String(revision),
    ...(isCut ? { continue: writeContinue({ revision, after: keyOf(last) }) } : {}),
    ...(isCut && isCounted ? { remainingItemCount: remaining } : {}),
  };
  return {
    status: 200,
    body: { kind: `${resource.kind}List`, apiVersion: groupVersion(resource), metadata, items: page },
  };
}

/** The state of a replica that lags; undefined: none does. */
function staleRevision(api: Api, { resource, staleChanges = 0 }: ApiRequest): number | undefined {
  return staleChanges === 0 ? undefined : api.store.revisionAgo(storageKey(resource), staleChanges);
}

/** The state that a client wants and no other; undefined: the newest. */
function exactRevision(api: Api, { query, resource }: ApiRequest): number | undefined {
  const text = query.get('resourceVersion') ?? '';
  const match = query.get('resourceVersionMatch');
  if (match !== null && text === '') {
    throw invalidOptions(
      'ListOptions',
      forbiddenValue('resourceVersionMatch', 'resourceVersionMatch is forbidden unless resourceVersion is provided'),
    );
  }
  if (text === '' || text === '0') return undefined;
  const revision = Number(text);
  if (!Number.isInteger(revision) || revision < 0)
    throw badRequest(`invalid resource version: ${JSON.stringify(text)}`);
  if (revision > api.store.revision) throw tooLarge(revision, api.store.revision);
  if (match !== 'Exact') return undefined;
  const oldest = api.store.oldestRevision(storageKey(resource));
  if (revision < oldest) throw expired(`The resourceVersion for the provided list is too old.`);
  return revision;
}

function writeContinue(token: Continue): string {
  return Buffer.from(JSON.stringify({ v: 'meta.k8s.io/v1', rv: token.revision, start: token.after })).toString(
    'base64url',
  );
}

function readContinue(text: string): Continue | undefined {
  if (text === '') return undefined;
  try {
    const { rv, start } = JSON.parse(Buffer.from(text, 'base64url').toString()) as { rv: unknown; start: unknown };
    if (typeof rv === 'number' && typeof start === 'string') return { revision: rv, after: start };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw badRequest('invalid continue token: continue key is not valid');
}
