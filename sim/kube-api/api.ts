import type { PostToWebhook } from './admission/call-webhook.ts';
import type { Authenticator, User } from './auth/tokens.ts';
import type { Faults } from './faults.ts';
import type { ApiResource } from './resources/api-resource.ts';
import type { Registry } from './resources/registry.ts';
import type { Store } from './store.ts';

/** What the verbs work on. */
export type Api = {
  readonly store: Store;
  readonly registry: Registry;
  readonly faults: Faults;
  readonly tokens: Authenticator;
  readonly nowMs: () => number;
  readonly newUid: () => string;
  /** A number from 0 to below 1. */
  readonly random: () => number;
  readonly bookmarkIntervalMs: number;
  /** Whether the server itself does what controllers do in a cluster: garbage collection, emptying of namespaces. */
  readonly collectsGarbage: boolean;
  /** Called with each request but watches, in the moment of its effect. */
  readonly onRequest: ((verb: string, request: ApiRequest) => void) | undefined;
  /** How webhooks are asked; absent: by HTTPS. */
  readonly postToWebhook: PostToWebhook | undefined;
};

/** A request for a resource, understood and allowed. */
export type ApiRequest = {
  readonly resource: ApiResource;
  readonly subresource: string;
  readonly namespace: string | undefined;
  /** Empty for a collection. */
  readonly name: string;
  readonly query: URLSearchParams;
  readonly contentType: string;
  /** The body, parsed; undefined when there is none. */
  readonly body: unknown;
  readonly user: User;
  readonly userAgent: string;
  /** A read is answered as it was so many changes of the resource ago. */
  readonly staleChanges?: number;
};

/** An answer that is one JSON document. */
export type ApiAnswer = { readonly status: number; readonly body: unknown; readonly warnings?: readonly string[] };
