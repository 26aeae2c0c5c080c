import { describeBlindness } from '../kube/find-silent-watches.ts';
import { type Informer, type InformerOptions, openInformer } from '../kube/informer.ts';
import { isKubeError } from '../kube/kube-error.ts';

/** Objects of one kind that the webhook follows, as far as the API server allows it. */
export type FollowedObjects<T> = Pick<Informer<T>, 'values' | 'byIndex' | 'hasAny'> & {
  readonly size: () => number;
  /** Whether the objects were read and are kept up to date. */
  readonly isFollowing: () => boolean;
  /** Returns undefined when the list is complete and heard of, or will never be; else why the webhook is not ready. */
  readonly problem: () => string | undefined;
  /** Follows until aborted; never rejects. */
  readonly run: (signal: AbortSignal) => Promise<void>;
};

/** What is followed. */
type FollowOptions<T> = Omit<InformerOptions<T>, 'observer'> & {
  /** How a reason of unreadiness names the objects: `StaticIPConfigs`. */
  readonly what: string;
  /** Logs that they may not be read; called once until they are. */
  readonly onRefused: (error: unknown) => void;
};

/**
 * Opens an informer of objects that the webhook can do without. A missing permission or definition means that there are
 * none; an outage of the API server does not.
 */
export function followObjects<T>({ what, onRefused, ...options }: FollowOptions<T>): FollowedObjects<T> {
  let isRefused = false;
  const informer = openInformer<T>({
    ...options,
    observer: {
      onList: () => {
        isRefused = false;
      },
      onFailure: (_, error) => {
        const refused = isKubeError(error, 'FORBIDDEN') || isKubeError(error, 'NOT_FOUND');
        if (refused && !isRefused) onRefused(error);
        isRefused = refused;
      },
    },
  });
  return {
    values: () => informer.values(),
    byIndex: (name, value) => informer.byIndex(name, value),
    hasAny: (name, value) => informer.hasAny(name, value),
    size: () => informer.size,
    isFollowing: () => informer.isSynced && !isRefused,
    problem: () => {
      if (isRefused) return undefined;
      return informer.isSynced ? describeBlindness([[what, informer]], options.clock) : `${what} are not read yet`;
    },
    run: (signal) => informer.start(signal),
  };
}

/** None, forever: they are not asked for. */
export const NO_OBJECTS: FollowedObjects<never> = {
  values: () => [],
  byIndex: () => [],
  hasAny: () => false,
  size: () => 0,
  isFollowing: () => false,
  problem: () => undefined,
  run: async () => {},
};
