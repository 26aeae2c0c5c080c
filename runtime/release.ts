/** The build replaces this name by a text; it is not defined when the sources run as they are. */
declare const TKE_ENI_RELEASE: string | undefined;

/** The release: `0.1.0+<commit>` in built executables, `0.0.0-dev` when run from the sources. */
export const release: string = typeof TKE_ENI_RELEASE === 'string' ? TKE_ENI_RELEASE : '0.0.0-dev';
