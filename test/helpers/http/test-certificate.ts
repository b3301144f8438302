import type { Test } from "tap";
import type { TlsFiles } from "../../../http/server/server-options.js";

/** A self-signed certificate for localhost and 127.0.0.1, for tests only, and its private key. */
export const TEST_CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBnDCCAUGgAwIBAgIUcQMy/78CkdPByc0HQuPgi5cZ/DMwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTIwNTgwNFoYDzIxMjYxMDI4
MjA1ODA0WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAASwl1uVIaya5WYLDWq9WXAKDfX4y53A3uytaxz2vuBK9Lkpd5RhRi0+
t46i0fgwAfWJ0O9i9Ix4aqIK1X07Esq8o28wbTAdBgNVHQ4EFgQU1ZXKgy8Etcei
NyypFcFHG38EPCMwHwYDVR0jBBgwFoAU1ZXKgy8EtceiNyypFcFHG38EPCMwDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSQAwRgIhAJZlrc6ySV7FBtQLQupULWfpUw+st9vQpfhTtPkp0rAAAiEA
gJSw/Z8G4oDY19jzh4MpEptNTbTclbvwEJeafm5o9kw=
-----END CERTIFICATE-----
`;

export const TEST_PRIVATE_KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg9oQwST2sIRvrcpyG
n2X+Wa0ZElUfDOQEqGXq+xV8H1ChRANCAASwl1uVIaya5WYLDWq9WXAKDfX4y53A
3uytaxz2vuBK9Lkpd5RhRi0+t46i0fgwAfWJ0O9i9Ix4aqIK1X07Esq8
-----END PRIVATE KEY-----
`;

/** Both as files. */
export function certificateFiles(t: Test): TlsFiles {
  const folder = t.testdir({ "cert.pem": TEST_CERTIFICATE, "key.pem": TEST_PRIVATE_KEY });
  return { certPath: `${folder}/cert.pem`, keyPath: `${folder}/key.pem` };
}
