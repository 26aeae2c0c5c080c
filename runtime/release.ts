/** Put in place of this name by the build; absent when the sources run as they are. */
declare const TKE_ENI_RELEASE: string | undefined;

/** Tells which release this is: `0.1.0+<commit>` in what the build made, `0.0.0-dev` from the sources. */
export const release: string = typeof TKE_ENI_RELEASE === 'string' ? TKE_ENI_RELEASE : '0.0.0-dev';
