import { join } from 'node:path';

/** Names the variable that holds the folder of AVA in few files; unset, AVA is loaded from where npm put it. */
export const BUNDLED_AVA_VARIABLE = 'TKE_ENI_BUNDLED_AVA';

/** Names the variable that, set, has a process run several test files, one after the other. */
export const SHARED_VARIABLE = 'TKE_ENI_SHARED_PROCESSES';

/** Where those files lie in `folder`. By the end of this path AVA knows the lines of a stack that are its own. */
export function bundledAvaFolder(folder: string): string {
  return join(folder, 'ava', 'lib', 'worker');
}

/** CommonJS packages that many test files load: of 20 to 120 files each, which take longer to find than to run. */
export const BUNDLED_PACKAGES: readonly string[] = ['yaml', 'prom-client', '@grpc/grpc-js'];

/** Where `bundleAva` puts such a package as one file. */
export function bundledPackageFile(folder: string, name: string): string {
  return join(folder, 'packages', `${name.replace('/', '+')}.cjs`);
}
