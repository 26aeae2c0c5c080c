import type { Api, ApiRequest } from '../api.ts';
import { ApiError } from '../api-error.ts';
import { isEqual, isObject, type JsonObject, type KubeObject, withMetadata } from '../object.ts';
import { applyJsonPatch } from '../patch/json-patch.ts';
import { groupVersion, storageKey } from '../resources/api-resource.ts';
import { readObject } from '../verbs/create.ts';
import { isDryRun } from '../verbs/is-dry-run.ts';
import { callWebhook } from './call-webhook.ts';
import { isAsked } from './is-asked.ts';
import { MUTATING_CONFIGURATIONS, type MutatingWebhook, partOf, webhooksOf } from './webhook.ts';

/** A request as the webhooks have made it, and what they warn of. */
type Admitted = { readonly request: ApiRequest; readonly warnings: readonly string[] };

/**
 * Has the webhooks change an object that is created. Each sees what those before it made; one with `IfNeeded` is asked once
 * more when a later one changed the object. @throws ApiError what a webhook refused; InternalError when one with
 * failurePolicy Fail did not answer
 * @see https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/
 */
export async function admit(api: Api, verb: string, request: ApiRequest): Promise<Admitted> {
  const none = { request, warnings: [] };
  if (verb !== 'create' || request.subresource !== '') return none;
  const all = allWebhooks(api);
  if (all.length === 0) return none;
  const given = withMetadata(readObject(request), { namespace: request.namespace });
  let object = request.resource.strategy.prepareCreate?.(given) ?? given;
  const warnings: string[] = [];
  const after = new Map<MutatingWebhook, KubeObject>();
  const ask = async (hook: MutatingWebhook): Promise<void> => {
    const answer = await askWebhook(api, hook, request, object);
    warnings.push(...answer.warnings);
    object = answer.object;
    after.set(hook, object);
  };
  for (const hook of all) if (isAsked(hook, api, request, object)) await ask(hook);
  if (after.size === 0) return none;
  for (const [hook, made] of [...after]) {
    if (hook.isReinvoked && !isEqual(made, object) && isAsked(hook, api, request, object)) await ask(hook);
  }
  return { request: { ...request, body: object }, warnings };
}

/** Reports whether webhooks would be asked: who cannot ask them has to say so. */
export function isAdmissionNeeded(api: Api, verb: string, request: ApiRequest): boolean {
  if (verb !== 'create' || request.subresource !== '') return false;
  return allWebhooks(api).some((hook) => isAsked(hook, api, request, readObject(request)));
}

/** By the names of their configurations. */
function allWebhooks({ store }: Api): readonly MutatingWebhook[] {
  return store.list(storageKey(MUTATING_CONFIGURATIONS)).flatMap(webhooksOf);
}

async function askWebhook(
  api: Api,
  hook: MutatingWebhook,
  request: ApiRequest,
  object: KubeObject,
): Promise<{ readonly object: KubeObject; readonly warnings: readonly string[] }> {
  const uid = api.newUid();
  let response: JsonObject;
  let changed: unknown;
  try {
    response = await callWebhook(hook, reviewOf(uid, request, object), uid, api.postToWebhook);
    changed = response['allowed'] === true ? patched(object, response) : object;
  } catch (error) {
    if (hook.isFailureIgnored) return { object, warnings: [] };
    const reason = error instanceof Error ? error.message : String(error);
    const message = `failed calling webhook "${hook.name}": failed to call webhook: ${reason}`;
    throw new ApiError(500, 'InternalError', `Internal error occurred: ${message}`);
  }
  if (response['allowed'] !== true) throw refusalOf(hook, response);
  const { warnings } = response as { readonly warnings?: unknown };
  return { object: changed as KubeObject, warnings: Array.isArray(warnings) ? warnings.map(String) : [] };
}

function reviewOf(uid: string, request: ApiRequest, object: KubeObject): JsonObject {
  const { resource, namespace, user } = request;
  const { group, version, kind, plural } = resource;
  const names = { kind: { group, version, kind }, resource: { group, version, resource: plural } };
  const { username, uid: userUid, groups } = user;
  return {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid,
      ...names,
      requestKind: names.kind,
      requestResource: names.resource,
      ...(object.metadata.name === undefined || object.metadata.name === '' ? {} : { name: object.metadata.name }),
      ...(namespace === undefined ? {} : { namespace }),
      operation: 'CREATE',
      userInfo: { username, groups, ...(userUid === undefined ? {} : { uid: userUid }) },
      object: { ...object, apiVersion: groupVersion(resource), kind },
      oldObject: null,
      dryRun: isDryRun(request),
      options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1' },
    },
  };
}

/** @throws Error when the patch is none, or leaves no object */
function patched(object: KubeObject, { patch, patchType }: JsonObject): unknown {
  if (patch === undefined || patch === null) return object;
  if (patchType !== 'JSONPatch') throw new Error(`webhook returned response.patch but not response.patchType`);
  const result = applyJsonPatch(object, JSON.parse(Buffer.from(String(patch), 'base64').toString()));
  if (isObject(result) && isObject(result['metadata'])) return result;
  throw new Error('the patch leaves no object');
}

const LEAST_CODE = 400;

function refusalOf({ name }: MutatingWebhook, response: JsonObject): ApiError {
  const { code, reason, message } = partOf(response, 'status') as Readonly<Record<string, unknown>>;
  const denied = `admission webhook "${name}" denied the request`;
  const why = [message, reason].find((text) => typeof text === 'string' && text !== '');
  const text = why === undefined ? `${denied} without explanation` : `${denied}: ${String(why)}`;
  return new ApiError(Math.max(LEAST_CODE, Number(code ?? 0)), String(reason ?? ''), text);
}
