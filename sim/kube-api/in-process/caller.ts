import type { KubeObject as ClientObject, ListPage, ResourceType } from '../../../kube/kube-client.ts';
import { isKubeError, KubeError } from '../../../kube/kube-error.ts';
import { apiVersionOf } from '../../../kube/resource-types.ts';
import type { Clock } from '../../../runtime/clock.ts';
import { admit, isAdmissionNeeded } from '../admission/admit.ts';
import type { Api, ApiRequest } from '../api.ts';
import { ApiError, noSuchResource } from '../api-error.ts';
import { forbidden, isAllowed } from '../auth/rbac.ts';
import type { User } from '../auth/tokens.ts';
import { type FaultAction, staleChangesOf, sufferInAnswer } from '../faults.ts';
import { isObject } from '../object.ts';
import type { ApiResource } from '../resources/api-resource.ts';
import { nameInFieldSelector } from '../selector.ts';
import { dispatch } from '../verbs/dispatch.ts';
import { toKubeError } from './to-kube-error.ts';

/** Who calls. */
export type Who = { readonly user: User; readonly userAgent: string };

/** What is asked for. */
export type Call = {
  readonly verb: string;
  readonly type: ResourceType;
  readonly namespace?: string | undefined;
  readonly name?: string;
  readonly subresource?: string | undefined;
  readonly query?: {
    readonly fieldSelector?: string;
    readonly labelSelector?: string;
    readonly limit?: number;
    readonly continueToken?: string;
    readonly resourceVersion?: string;
  };
  readonly body?: unknown;
  readonly contentType?: string;
};

/** How calls are made. */
type CallerOptions = {
  readonly clock: Clock;
  readonly isLight?: boolean;
  readonly latencyMs?: number;
  readonly requestTimeoutMs?: number;
  readonly authorization?: 'all' | 'rbac';
};

const REQUEST_TIMEOUT_MS = 30_000;

/** Brings requests to the verbs and answers back, with the faults that a connection would have. */
export class Caller {
  readonly #api: Api;
  readonly #options: CallerOptions;
  readonly #resources = new WeakMap<ApiResource, ApiResource>();

  constructor(api: Api, options: CallerOptions) {
    this.#api = api;
    this.#options = options;
  }

  /** The clock that everything waits on. */
  get clock(): Clock {
    return this.#options.clock;
  }

  /** Makes a call that answers with an object. @throws KubeError */
  async call(who: Who, call: Call, signal?: AbortSignal): Promise<ClientObject> {
    // A verb for one object answers with one, or with a Status.
    return (await this.#run(who, call, signal)) as ClientObject;
  }

  /** The same; undefined when there is no such object. @throws KubeError */
  async callOrMiss(who: Who, call: Call, signal?: AbortSignal): Promise<ClientObject | undefined> {
    try {
      return await this.call(who, call, signal);
    } catch (error) {
      if (isKubeError(error, 'NOT_FOUND') && isObjectMissing(error)) return undefined;
      throw error;
    }
  }

  /** Reads one page. @throws KubeError */
  async list(who: Who, call: Call, signal?: AbortSignal): Promise<ListPage> {
    const name = nameInFieldSelector(call.query?.fieldSelector ?? '');
    // One object by its name needs no look at all the others.
    const isOne = this.#options.isLight === true && name !== undefined && !call.query?.fieldSelector?.includes(',');
    if (isOne && call.query?.labelSelector === undefined) {
      const object = await this.callOrMiss(who, { ...call, query: {}, verb: 'get', name }, signal);
      return { items: object === undefined ? [] : [object], resourceVersion: String(this.#api.store.revision) };
    }
    const body = await this.#run(who, call, signal);
    const { items, metadata } = body as { items: readonly ClientObject[]; metadata: Readonly<Record<string, string>> };
    const next = metadata['continue'];
    return {
      items,
      resourceVersion: metadata['resourceVersion'] ?? '',
      ...(next === undefined ? {} : { continueToken: next }),
    };
  }

  /**
   * Understands a call and lets it suffer what the faults have for it, up to its effect. The actions that were drawn are
   * returned: some of them are for later.
   * @throws KubeError
   */
  async arrive(
    who: Who,
    call: Call,
    signal?: AbortSignal,
  ): Promise<{ readonly request: ApiRequest; readonly actions: readonly FaultAction[] }> {
    signal?.throwIfAborted();
    const { clock, latencyMs = 0 } = this.#options;
    const about = call.subresource === undefined ? call.type.plural : `${call.type.plural}/${call.subresource}`;
    const sign = { verb: call.verb, resource: about, name: call.name ?? '', user: who.user.username };
    const actions = this.#api.faults.actionsFor({ ...sign, userAgent: who.userAgent });
    // A call is never answered within the turn that makes it.
    await (latencyMs > 0 ? clock.sleep(latencyMs / 2, signal) : undefined);
    for (const action of actions) await this.#suffer(action, call, signal);
    try {
      const request = this.#requestOf(who, call);
      if (this.#options.authorization === 'rbac') this.#authorize(request, call.verb);
      return { request, actions };
    } catch (error) {
      throw asKubeError(error, call);
    }
  }

  async #run(who: Who, call: Call, signal?: AbortSignal): Promise<unknown> {
    const { request, actions } = await this.arrive(who, call, signal);
    const { clock, latencyMs = 0 } = this.#options;
    if (this.#api.postToWebhook === undefined && isAdmissionNeeded(this.#api, call.verb, request)) {
      throw new Error('in process no webhook can be asked: use startKubeApi, or delete the configuration');
    }
    try {
      const admitted = this.#api.postToWebhook === undefined ? { request } : await admit(this.#api, call.verb, request);
      const { body } = dispatch(this.#api, call.verb, { ...admitted.request, staleChanges: staleChangesOf(actions) });
      if (latencyMs > 0) await clock.sleep(latencyMs / 2, signal);
      if (actions.some((action) => action.kind === 'drop-after')) throw dropped(call);
      return sufferInAnswer(actions, call.verb, body);
    } catch (error) {
      throw asKubeError(error, call);
    }
  }

  async #suffer(action: FaultAction, call: Call, signal: AbortSignal | undefined): Promise<void> {
    const { clock, requestTimeoutMs = REQUEST_TIMEOUT_MS } = this.#options;
    switch (action.kind) {
      case 'delay':
        return clock.sleep(action.ms, signal);
      case 'hang':
        await clock.sleep(requestTimeoutMs, signal);
        throw new KubeError({ code: 'TIMEOUT', request: textOf(call), text: `no answer in ${requestTimeoutMs} ms` });
      case 'drop-before':
        throw dropped(call);
      case 'status': {
        const { code, reason = '', retryAfterSeconds } = action;
        const details = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
        throw toKubeError(new ApiError(code, reason, `fault: ${reason}`, details), textOf(call));
      }
      default:
        return;
    }
  }

  #requestOf(who: Who, call: Call): ApiRequest {
    const { type, query = {}, body } = call;
    const found = this.#api.registry.find(type.group, type.version, type.plural);
    if (found === undefined) throw noSuchResource();
    return {
      resource: this.#options.isLight === true ? this.#withoutSchema(found) : found,
      subresource: call.subresource ?? '',
      namespace: call.namespace,
      name: call.name ?? '',
      query: queryOf(query),
      contentType: call.contentType ?? 'application/json',
      body: this.#bodyOf(type, body),
      ...who,
    };
  }

  /** What a server reads of a body: JSON drops what is undefined, and shares nothing with who sent it. */
  #bodyOf(type: ResourceType, body: unknown): unknown {
    if (body === undefined) return undefined;
    if (this.#options.isLight !== true) return JSON.parse(JSON.stringify(body));
    // Only a body that is an object of the resource has to say so.
    return isObject(body) && 'metadata' in body ? { apiVersion: apiVersionOf(type), kind: type.kind, ...body } : body;
  }

  #withoutSchema(resource: ApiResource): ApiResource {
    const known = this.#resources.get(resource);
    if (known !== undefined) return known;
    const { schema: _, ...rest } = resource;
    this.#resources.set(resource, rest);
    return rest;
  }

  #authorize(request: ApiRequest, verb: string): void {
    const { resource, query, user } = request;
    // Who somebody is and what they may do, everyone may ask.
    if (resource.plural.startsWith('selfsubject')) return;
    const selected = nameInFieldSelector(query.get('fieldSelector') ?? '') ?? '';
    const access = { ...request, verb, group: resource.group, resource: resource.plural };
    const named = { ...access, name: request.name === '' ? selected : request.name };
    if (!isAllowed(this.#api, user, named)) throw forbidden(user, named);
  }
}

/** Reports whether the server names the object that it does not have: a resource that is not served has no name in the answer. */
function isObjectMissing({ cause }: KubeError): boolean {
  return cause instanceof ApiError && typeof cause.details?.['name'] === 'string' && cause.details['name'] !== '';
}

/** Names a call as errors do: `PUT nodeeniconfigs/n1`. */
export function textOf({ verb, type, namespace, name, subresource }: Call): string {
  const path = [namespace, type.plural, name, subresource].filter((part) => part !== undefined && part !== '');
  return `${METHODS[verb] ?? verb} ${path.join('/')}`;
}

/** Makes the error of a connection that broke. */
export function dropped(call: Call): KubeError {
  return new KubeError({ code: 'UNAVAILABLE', request: textOf(call), text: 'the connection was closed' });
}

/** Makes of what the server threw what a client throws. */
export function asKubeError(error: unknown, call: Call): unknown {
  return error instanceof ApiError ? toKubeError(error, textOf(call)) : error;
}

const METHODS: Readonly<Record<string, string>> = {
  get: 'GET',
  list: 'GET',
  watch: 'GET',
  create: 'POST',
  update: 'PUT',
  patch: 'PATCH',
  delete: 'DELETE',
};

function queryOf(query: NonNullable<Call['query']>): URLSearchParams {
  const params = new URLSearchParams();
  if (query.fieldSelector !== undefined) params.set('fieldSelector', query.fieldSelector);
  if (query.labelSelector !== undefined) params.set('labelSelector', query.labelSelector);
  if (query.limit !== undefined) params.set('limit', String(query.limit));
  if (query.continueToken !== undefined) params.set('continue', query.continueToken);
  if (query.resourceVersion !== undefined) params.set('resourceVersion', query.resourceVersion);
  return params;
}
