import type { KubeClient, WatchEvent } from './kube-client.ts';
import { isKubeError, type KubeError } from './kube-error.ts';

/**
 * A right of the API in the form people grant it: `list pods`, `patch nodes/status`; or `token`, when no token was
 * accepted.
 */
type RightName = string;

/**
 * Called when a right is found missing, and when it is present again (`error` is undefined then); not with each call.
 */
export type RightsListener = (right: RightName, error: KubeError | undefined) => void;

/** The name for a token that the API server does not accept. */
export const TOKEN_RIGHT = 'token';

/**
 * Wraps a client so that it reports the rights it lacks. Each caller retries a refused call for itself, without end.
 * Only here the refusals are recognized as one missing right that an administrator has to grant.
 */
export function trackRights(client: KubeClient, listener: RightsListener): KubeClient {
  const tracker = new RightsTracker(listener);
  const tracked: KubeClient = {
    get: (type, ...rest) => tracker.track(`get ${type.plural}`, client.get(type, ...rest)),
    listPage: (type, ...rest) => tracker.track(`list ${type.plural}`, client.listPage(type, ...rest)),
    watch: (type, ...rest) => tracker.trackWatch(`watch ${type.plural}`, client.watch(type, ...rest)),
    create: (type, ...rest) => {
      const part = type.subresource === undefined ? '' : `/${type.subresource}`;
      return tracker.track(`create ${type.plural}${part}`, client.create(type, ...rest));
    },
    update: (type, ...rest) => tracker.track(`update ${type.plural}`, client.update(type, ...rest)),
    patch: (type, ref, patch, signal) => {
      const part = patch.subresource === undefined ? '' : `/${patch.subresource}`;
      return tracker.track(`patch ${type.plural}${part}`, client.patch(type, ref, patch, signal));
    },
    delete: (type, ...rest) => tracker.track(`delete ${type.plural}`, client.delete(type, ...rest)),
  };
  return client.urgent === undefined ? tracked : { ...tracked, urgent: trackRights(client.urgent, listener) };
}

/** Renders what an administrator has to do about a missing right. */
export function describeMissingRight(right: RightName, error: KubeError, role: string): string {
  const remedy =
    right === TOKEN_RIGHT
      ? `the API server does not accept the token of ${role}; look at its ServiceAccount or kubeconfig`
      : `${role} may not ${right}; grant it to its ClusterRole`;
  return `${remedy}: ${error.message}`;
}

class RightsTracker {
  readonly #listener: RightsListener;
  readonly #missing = new Set<RightName>();

  constructor(listener: RightsListener) {
    this.#listener = listener;
  }

  async track<T>(right: RightName, call: Promise<T>): Promise<T> {
    try {
      const answer = await call;
      this.#granted(right);
      return answer;
    } catch (error) {
      this.#classify(right, error);
      throw error;
    }
  }

  async *trackWatch(right: RightName, events: AsyncIterable<WatchEvent>): AsyncIterable<WatchEvent> {
    try {
      for await (const event of events) {
        this.#granted(right);
        yield event;
      }
      this.#granted(right);
    } catch (error) {
      this.#classify(right, error);
      throw error;
    }
  }

  #classify(right: RightName, error: unknown): void {
    if (isKubeError(error, 'FORBIDDEN')) this.#lacks(right, error);
    else if (isKubeError(error, 'UNAUTHORIZED')) this.#lacks(TOKEN_RIGHT, error);
    // The call failed for another reason, so the right is granted.
    else if (isKubeError(error, 'CONFLICT', 'NOT_FOUND', 'ALREADY_EXISTS', 'INVALID', 'EXPIRED')) this.#granted(right);
  }

  #lacks(right: RightName, error: KubeError): void {
    if (this.#missing.has(right)) return;
    this.#missing.add(right);
    this.#listener(right, error);
  }

  #granted(right: RightName): void {
    if (this.#missing.size === 0) return;
    for (const one of [right, TOKEN_RIGHT]) if (this.#missing.delete(one)) this.#listener(one, undefined);
  }
}
