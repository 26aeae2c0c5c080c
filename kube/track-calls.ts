import type { KubeClient, WatchEvent } from './kube-client.ts';

/** A call of the API in the form in which people grant it: `list pods`, `patch nodes/status`. */
export type CallName = string;

/**
 * Called with the end of each call; `error` is undefined after a good answer. A watch has one when it opens, with each of its
 * events, and when it ends cleanly.
 */
export type CallListener = (call: CallName, error: unknown) => void;

/** Wraps a client, and its urgent one, so that `settled` hears how each call ended. What the caller gets is unchanged. */
export function trackCalls(client: KubeClient, settled: CallListener): KubeClient {
  const track = async <T>(call: CallName, answer: Promise<T>): Promise<T> => {
    try {
      const value = await answer;
      settled(call, undefined);
      return value;
    } catch (error) {
      settled(call, error);
      throw error;
    }
  };
  const tracked: KubeClient = {
    get: (type, ...rest) => track(`get ${type.plural}`, client.get(type, ...rest)),
    listPage: (type, ...rest) => track(`list ${type.plural}`, client.listPage(type, ...rest)),
    watch: (type, query, signal, onOpen) => {
      const call = `watch ${type.plural}`;
      const opened = (): void => {
        settled(call, undefined);
        onOpen?.();
      };
      return trackWatch(call, client.watch(type, query, signal, opened), settled);
    },
    create: (type, ...rest) => {
      const part = type.subresource === undefined ? '' : `/${type.subresource}`;
      return track(`create ${type.plural}${part}`, client.create(type, ...rest));
    },
    update: (type, ...rest) => track(`update ${type.plural}`, client.update(type, ...rest)),
    patch: (type, ref, patch, signal) => {
      const part = patch.subresource === undefined ? '' : `/${patch.subresource}`;
      return track(`patch ${type.plural}${part}`, client.patch(type, ref, patch, signal));
    },
    delete: (type, ...rest) => track(`delete ${type.plural}`, client.delete(type, ...rest)),
    ...(client.serverMs === undefined ? {} : { serverMs: client.serverMs }),
  };
  return client.urgent === undefined ? tracked : { ...tracked, urgent: trackCalls(client.urgent, settled) };
}

async function* trackWatch(
  call: CallName,
  events: AsyncIterable<WatchEvent>,
  settled: CallListener,
): AsyncIterable<WatchEvent> {
  try {
    for await (const event of events) {
      settled(call, undefined);
      yield event;
    }
    settled(call, undefined);
  } catch (error) {
    settled(call, error);
    throw error;
  }
}
