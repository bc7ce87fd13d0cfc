import { defineConfig } from "vitest/config";

export default defineConfig({
  // The files under test lie outside this folder, as the widget finds them.
  server: { fs: { allow: ["../../.."] } },
  test: { environment: "happy-dom", include: ["*.test.js"], testTimeout: 10000 },
});
