import type { ServerResponse } from 'node:http';
import { admit } from '../admission/admit.ts';
import type { Api, ApiAnswer, ApiRequest } from '../api.ts';
import { methodNotAllowed, noSuchResource, notFound } from '../api-error.ts';
import { type AccessRequest, forbidden, isAllowed } from '../auth/rbac.ts';
import { type FaultAction, staleChangesOf, sufferInAnswer, watchEndOf } from '../faults.ts';
import type { ApiResource } from '../resources/api-resource.ts';
import { isBuiltInGroup } from '../resources/built-in.ts';
import { nameInFieldSelector } from '../selector.ts';
import { dispatch } from '../verbs/dispatch.ts';
import { answerJson, type Exchange, notThere } from './exchange.ts';
import { readBody } from './read-body.ts';
import { formOf, includeOf, render } from './render.ts';
import { type RequestPath, verbOf } from './request-path.ts';
import { streamWatch } from './stream-watch.ts';
import { sufferBefore } from './suffer.ts';

/** Answers a request for a resource: faults first, then who may, then what. @throws ApiError */
export async function serveResource(
  api: Api,
  authorizes: boolean,
  exchange: Exchange,
  path: RequestPath,
): Promise<void> {
  const { request, response, url, user } = exchange;
  const verb = verbOf(request.method ?? '', path, url.searchParams);
  const userAgent = request.headers['user-agent'] ?? '';
  const about = path.subresource === '' ? path.resource : `${path.resource}/${path.subresource}`;
  const sign = { verb, resource: about, name: path.name, user: user.username, userAgent };
  const actions = api.faults.actionsFor(sign);
  const body = await readBody(request);
  if (!(await sufferBefore(actions, exchange))) return;
  if (authorizes) authorize(api, exchange, path, verb);
  const resource = api.registry.find(path.group, path.version, path.resource);
  if (resource === undefined) {
    if (isBuiltInGroup(path.group)) throw noSuchResource();
    return notThere(response);
  }
  if (!hasSubresource(resource, path.subresource)) {
    throw resource.schema === undefined ? noSuchResource() : notFound(resource, path.name);
  }
  const contentType = request.headers['content-type'] ?? 'application/json';
  const staleChanges = staleChangesOf(actions);
  const query = queryOf(url.searchParams, watchEndOf(actions));
  const asked = { ...path, resource, query, contentType, body, user, userAgent, staleChanges };
  if (verb === 'watch') {
    if (!resource.verbs.includes('watch')) throw methodNotAllowed();
    const delayMs = actions.reduce((sum, action) => sum + (action.kind === 'watch-delay' ? action.ms : 0), 0);
    return streamWatch(api, exchange, asked, delayMs);
  }
  const admitted = await admit(api, verb, asked);
  const answer = dispatch(api, verb, admitted.request);
  if (isDropped(actions)) return void request.socket.destroy();
  const warnings = [...admitted.warnings, ...(answer.warnings ?? [])];
  sendAnswer(api, exchange, asked, { ...answer, warnings, body: sufferInAnswer(actions, verb, answer.body) });
}

/** A watch that a fault ends is one that asks for its end. */
function queryOf(asked: URLSearchParams, endMs: number | undefined): URLSearchParams {
  if (endMs === undefined) return asked;
  const query = new URLSearchParams(asked);
  query.set('timeoutSeconds', String(endMs / 1000));
  return query;
}

function isDropped(actions: readonly FaultAction[]): boolean {
  return actions.some((action) => action.kind === 'drop-after');
}

function hasSubresource(resource: ApiResource, subresource: string): boolean {
  return subresource === '' || resource.subresources.includes(subresource);
}

function authorize(api: Api, { user, url }: Exchange, path: RequestPath, verb: string): void {
  const selected = path.name === '' ? nameInFieldSelector(url.searchParams.get('fieldSelector') ?? '') : undefined;
  const access: AccessRequest = { ...path, verb, name: path.name || (selected ?? '') };
  // Who somebody is and what they may do, everyone may ask.
  if (path.resource.startsWith('selfsubject')) return;
  if (!isAllowed(api, user, access)) throw forbidden(user, access);
}

function sendAnswer(api: Api, exchange: Exchange, request: ApiRequest, answer: ApiAnswer): void {
  const { response } = exchange;
  warn(response, answer.warnings ?? []);
  const form = formOf(exchange.request.headers.accept ?? '');
  const include = includeOf(request.query);
  const rendered = render(request.resource, answer.body, form, { include, withHeader: true, nowMs: api.nowMs() });
  answerJson(response, answer.status, rendered);
}

function warn(response: ServerResponse, warnings: readonly string[]): void {
  if (warnings.length === 0) return;
  response.setHeader(
    'Warning',
    warnings.map((text) => `299 - ${JSON.stringify(text)}`),
  );
}
