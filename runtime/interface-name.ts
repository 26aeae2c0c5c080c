/** Bytes of the longest name of a network interface, its final zero left out. @see uapi/linux/if.h IFNAMSIZ */
const MAX_INTERFACE_NAME_BYTES = 15;

/** Completes "expected …" where a text is no interface name. */
export const INTERFACE_NAME_RULE = `an interface name: 1 to ${MAX_INTERFACE_NAME_BYTES} bytes, no "/", ":", "%" or white space, not "." or ".."`;

/**
 * Tells whether the kernel would give an interface this name, and no other: a "%d" in it asks for a number of the
 * kernel's choice.
 * @see linux/net/core/dev.c dev_valid_name(), __dev_alloc_name()
 */
export function isInterfaceName(name: string): boolean {
  const bytes = Buffer.byteLength(name);
  return bytes > 0 && bytes <= MAX_INTERFACE_NAME_BYTES && !/[/:%\s]/.test(name) && name !== '.' && name !== '..';
}
