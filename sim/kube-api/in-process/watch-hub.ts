import type { Clock } from '../../../runtime/clock.ts';
import type { Api } from '../api.ts';
import { isClient } from '../faults.ts';
import { isObject, type KubeObject } from '../object.ts';
import type { StoreEvent } from '../store.ts';

/** Who follows a resource. */
type Follower = {
  readonly userAgent: string;
  readonly deliver: (event: StoreEvent) => void;
  readonly bookmark: () => void;
  /** The connection breaks. */
  readonly cut: () => void;
};

/** What a follower looks at only, if its selector says so: events of other objects need not be shown to it. */
export type Focus =
  | { readonly kind: 'all' }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'node'; readonly nodeName: string };

/** The followers of one resource, by what they look at. */
type Resource = {
  readonly all: Set<Follower>;
  readonly focused: Map<string, Set<Follower>>;
};

/**
 * Hands changes to those whom they may concern. Thousands follow one object each: asking each of them about each
 * change would cost more than everything else.
 */
export class WatchHub {
  readonly #api: Api;
  readonly #clock: Clock;
  readonly #resources = new Map<string, Resource>();
  readonly #followers = new Set<Follower>();
  #ticking: AbortController | undefined;

  constructor(api: Api, clock: Clock) {
    this.#api = api;
    this.#clock = clock;
  }

  /** Adds a follower; the returned function takes it away. */
  add(storageKey: string, focus: Focus, follower: Follower): () => void {
    const set = setOf(this.#resourceOf(storageKey), focus);
    set.add(follower);
    this.#followers.add(follower);
    this.#tick();
    return () => {
      set.delete(follower);
      this.#followers.delete(follower);
      if (this.#followers.size > 0) return;
      this.#ticking?.abort();
      this.#ticking = undefined;
    };
  }

  /** Breaks every watch, or those of one client. */
  cutAll(userAgent?: string): void {
    for (const follower of [...this.#followers])
      if (userAgent === undefined || isClient(follower.userAgent, userAgent)) follower.cut();
  }

  #resourceOf(storageKey: string): Resource {
    const known = this.#resources.get(storageKey);
    if (known !== undefined) return known;
    const made: Resource = { all: new Set(), focused: new Map() };
    this.#resources.set(storageKey, made);
    this.#api.store.subscribe(storageKey, (event) => {
      for (const follower of [...made.all]) follower.deliver(event);
      for (const key of keysOf(event))
        for (const follower of [...(made.focused.get(key) ?? [])]) follower.deliver(event);
    });
    return made;
  }

  /** One timer for the bookmarks of all. */
  #tick(): void {
    if (this.#ticking !== undefined) return;
    const ticking = new AbortController();
    this.#ticking = ticking;
    const next = (): void => {
      this.#clock.sleep(this.#api.bookmarkIntervalMs, ticking.signal).then(
        () => {
          for (const follower of [...this.#followers]) follower.bookmark();
          next();
        },
        // Nobody follows any more.
        () => {},
      );
    };
    next();
  }
}

function setOf(resource: Resource, focus: Focus): Set<Follower> {
  if (focus.kind === 'all') return resource.all;
  const key = focus.kind === 'name' ? `name/${focus.name}` : `node/${focus.nodeName}`;
  const set = resource.focused.get(key) ?? new Set();
  resource.focused.set(key, set);
  return set;
}

function keysOf({ object, previous }: StoreEvent): ReadonlySet<string> {
  const nodes = [object, previous].flatMap((one) => (one === undefined ? [] : [nodeNameOf(one)]));
  const named = nodes.flatMap((node) => (node === undefined ? [] : [`node/${node}`]));
  return new Set([`name/${object.metadata.name}`, ...named]);
}

function nodeNameOf(object: KubeObject): string | undefined {
  const { spec } = object as { readonly spec?: unknown };
  return isObject(spec) && typeof spec['nodeName'] === 'string' ? spec['nodeName'] : undefined;
}
