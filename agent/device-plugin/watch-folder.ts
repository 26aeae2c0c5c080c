import { type FSWatcher, watch } from 'node:fs';
import { fileIdentity } from './file-identity.ts';

/** A folder under watch. */
export type FolderWatch = {
  /** Watches the folder that has the name now, when it is another than before. Idempotent. */
  renew(): void;
  close(): void;
};

/**
 * Calls `changed` when a name in the folder comes or goes. The folder need not be there yet. Notifications may be missed
 * (no inotify instance left, the folder replaced), so look now and then all the same.
 */
export function watchFolder(path: string, changed: () => void): FolderWatch {
  let current: { readonly watcher: FSWatcher; readonly identity: string } | undefined;
  const drop = (): void => {
    current?.watcher.close();
    current = undefined;
  };
  return {
    renew: () => {
      const identity = fileIdentity(path);
      if (identity === current?.identity) return;
      drop();
      if (identity === undefined) return;
      try {
        const watcher = watch(path, { persistent: false }, changed);
        watcher.on('error', drop);
        current = { watcher, identity };
      } catch {
        // No inotify instance left: who looks now and then finds out a little later.
      }
    },
    close: drop,
  };
}
